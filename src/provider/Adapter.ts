// What the three SDK adapters have in common: one stream per call, its own assembly, translator and tap. An adapter
// says how to open a stream of its wire format and how to read the events.
import * as Redacted from "effect/Redacted"
import { answerStream } from "./AnswerStream.ts"
import type { Assembly } from "./Assembly.ts"
import { withBytes } from "./Attachments.ts"
import type { ModelRequest } from "./Canonical.ts"
import type { HttpProviderConfig } from "./HttpProvider.ts"
import type { ModelProvider } from "./Provider.ts"
import { readStream } from "./StreamRun.ts"
import { makeTap, type Tap } from "./Tap.ts"
import { shapeRequest } from "./ToolSchema.ts"

export interface EventTranslator<Event> {
  /** Translates one event; settles the assembly when it is the terminal one. */
  readonly handle: (event: Event) => void
  /** Called when the stream ended by itself before the assembly was settled. */
  readonly end?: () => void
}

export interface Adapter<Event> {
  readonly translator: (assembly: Assembly, request: ModelRequest) => EventTranslator<Event>
  /** Sends the request through a client whose connections tell the tap what they hear. */
  readonly open: (request: ModelRequest, tap: Tap, signal: AbortSignal) => Promise<AsyncIterable<Event>>
}

export const makeAdapter = <Event>(
  { apiKey, name, readBlob }: Pick<HttpProviderConfig, "apiKey" | "name" | "readBlob">,
  adapter: Adapter<Event>
): ModelProvider => ({
  name,
  stream: (request, options) => {
    const { request: shaped, unpack } = shapeRequest(request)
    return answerStream({
      provider: name,
      unpack,
      feed: (answer) => {
        const { end, handle } = adapter.translator(answer.assembly, shaped)
        const tap = makeTap(options?.onActivity)
        const run = {
          provider: name,
          tap,
          secrets: apiKey === undefined ? [] : [Redacted.value(apiKey)],
          open: async (signal: AbortSignal) => adapter.open(await withBytes(shaped, readBlob), tap, signal),
          handle,
          ...(end === undefined ? {} : { onEnd: end })
        }
        return readStream<Event>(run, answer)
      }
    })
  }
})
