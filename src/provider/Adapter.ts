// What the three SDK adapters have in common: one stream per call, its own assembly, translator and tap. An adapter
// says how to open a stream of its wire format and how to read the events.
import * as Redacted from "effect/Redacted"
import { Assembly } from "./Assembly.ts"
import { withBytes } from "./Attachments.ts"
import type { ModelRequest } from "./Canonical.ts"
import type { HttpProviderConfig } from "./HttpProvider.ts"
import type { ModelProvider } from "./Provider.ts"
import { runStream } from "./StreamRun.ts"
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
  stream: (request, sink, options) => {
    const { request: shaped, unpack } = shapeRequest(request)
    const assembly = new Assembly(name, sink, unpack)
    const { end, handle } = adapter.translator(assembly, shaped)
    const tap = makeTap(options.onActivity)
    return runStream<Event>({
      provider: name,
      assembly,
      tap,
      signal: options.signal,
      secrets: apiKey === undefined ? [] : [Redacted.value(apiKey)],
      nowMs: options.clock?.nowMs ?? Date.now,
      open: async (signal) => adapter.open(await withBytes(shaped, readBlob), tap, signal),
      handle,
      ...(end === undefined ? {} : { onEnd: end })
    })
  }
})
