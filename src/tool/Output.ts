// Output that is longer than a result may carry: head and tail stay inline, all of it goes beside the log, and the model
// is told the name under which `read_file` pages through it.
import { createReadStream, type ReadStream } from "node:fs"
import { rm } from "node:fs/promises"
import * as Effect from "effect/Effect"
import type { BlobPort } from "../contract/Blobs.ts"
import type { BlobRef } from "../rune/kinds/shared.ts"
import type { ProcessEnded } from "../sandbox/process/ProcessPort.ts"

export interface KeptOutput {
  readonly output: string
  readonly output_blob?: BlobRef
}

/** The name by which a model asks for a blob. */
export const blobName = ({ sha256 }: Pick<BlobRef, "sha256">): string => `blob:${sha256}`

const whereItIs = (blob: BlobRef | undefined): string =>
  blob === undefined ? "" : `; read_file "${blobName(blob)}" has all ${blob.bytes} bytes`

/** No room for the whole is no reason to lose the rest. */
const kept = (blobs: BlobPort | undefined, source: string | (() => ReadStream)): Effect.Effect<BlobRef | undefined> =>
  blobs === undefined
    ? Effect.succeed(undefined)
    : Effect.uninterruptible(
        Effect.promise(() => blobs.keep(typeof source === "string" ? source : source()).catch(() => undefined))
      )

/** Head and tail of a text that is too long, the whole of it in a blob where there is room for one. */
export const fitOutput: (
  output: string,
  options: { readonly charsMax: number; readonly blobs: BlobPort | undefined }
) => Effect.Effect<KeptOutput> = Effect.fnUntraced(function* (output, options) {
  if (output.length <= options.charsMax) return { output }
  const blob = yield* kept(options.blobs, output)
  const half = Math.floor(options.charsMax / 2)
  const marker = `\n… ${output.length - 2 * half} characters left out${whereItIs(blob)} …\n`
  const short = `${output.slice(0, half)}${marker}${output.slice(-half)}`.toWellFormed()
  return { output: short, ...(blob === undefined ? {} : { output_blob: blob }) }
})

/** The output of a process; what did not fit inline is moved into a blob, and its file removed. */
export const processOutput = (
  { output, overflow }: Pick<ProcessEnded, "output" | "overflow">,
  blobs: BlobPort | undefined
): Effect.Effect<KeptOutput> => {
  if (overflow === undefined) return Effect.succeed({ output })
  const moved = Effect.map(
    kept(blobs, () => createReadStream(overflow.path)),
    (blob): KeptOutput => {
      if (blob === undefined) return { output }
      const end = output.endsWith("\n") ? "" : "\n"
      return { output: `${output}${end}… cut${whereItIs(blob)} …\n`, output_blob: blob }
    }
  )
  return Effect.ensuring(
    moved,
    Effect.promise(() => rm(overflow.path, { force: true }))
  )
}
