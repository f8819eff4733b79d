// `read_file`: a page of a text file, or of an output that was kept as a blob. Tells where to go on, and what a file is
// that is no text.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { BlobPort } from "../../../contract/Blobs.ts"
import { isImageType, mediaLimits, pdfType, sniffMedia } from "../../../rune/Media.ts"
import type { WorkspaceChoice } from "../../../sandbox/WorkspaceCheck.ts"
import { defineTool } from "../../DefineTool.ts"
import type { Tool } from "../../Tool.ts"
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { pure, step, told } from "../FileWork.ts"
import { aPath, flag, looks, optional, type WorkspaceAccess, whole } from "../ToolSchema.ts"
import { type ByteSource, blobPattern, blobSource, isBinary, openFile, readWhole } from "./Bytes.ts"
import { type LinePage, readPage } from "./Lines.ts"

const magic: ReadonlyArray<readonly [string, string]> = [
  ["504b0304", "a ZIP archive"],
  ["1f8b", "a gzip archive"],
  ["7f454c46", "an ELF program"],
  ["53514c697465", "an SQLite database"]
]

const binaryKind = (bytes: Buffer): string => {
  const begin = bytes.subarray(0, 8).toString("hex")
  return magic.find(([prefix]) => begin.startsWith(prefix))?.[1] ?? "binary"
}

const numbered = (page: LinePage, firstLine: number): string => {
  const lines = page.text.split("\n")
  const hasEnd = page.text.endsWith("\n")
  const shown = hasEnd ? lines.slice(0, -1) : lines
  return (
    shown.map((line, index) => `${String(firstLine + index).padStart(6)}\t${line}`).join("\n") + (hasEnd ? "\n" : "")
  )
}

const howToGoOn = ({ next, totalLines }: LinePage): string => {
  if (next === undefined) return ""
  const total = totalLines === undefined ? "" : ` of ${totalLines}`
  const where = next.column === 1 ? `offset ${next.line}` : `offset ${next.line}, column ${next.column}`
  return next.column === 1
    ? `… up to line ${next.line - 1}${total}; ${where} goes on …\n`
    : `\n… up to the middle of line ${next.line}${total}; ${where} goes on …\n`
}

const input = Schema.Struct({
  path: aPath("path of a file in the workspace, or blob:<sha256> for an output that was kept whole"),
  offset: optional(whole("first line to read, from 1", { minimum: 1 })),
  limit: optional(whole(`how many lines at most, ${builtinLimits.readLinesMax} unless told`, { minimum: 1 })),
  column: optional(whole("first character of that line, to go on inside a long line", { minimum: 1 })),
  line_numbers: optional(flag("put the number of each line before it"))
})
type ReadInput = typeof input.Type

const shownPage = (page: LinePage, { line_numbers, offset: firstLine = 1 }: ReadInput): string => {
  if (page.lines === 0 && firstLine > 1)
    throw new ToolFailure(
      "invalid_arguments",
      `offset ${firstLine} is after the end: there are ${page.totalLines} lines`
    )
  const text = line_numbers === true && page.text !== "" ? numbered(page, firstLine) : page.text
  return `${text}${howToGoOn(page)}`
}

/** All of an image or a document, for the model to look at. */
const showWhole = Effect.fnUntraced(function* (source: ByteSource, shown: string, type: string) {
  const bytesMax = isImageType(type) ? mediaLimits.imageBytesMax : mediaLimits.fileBytesMax
  if (source.size > bytesMax)
    return yield* Effect.fail(
      new ToolFailure(
        "too_large",
        `${shown} is ${type}, ${source.size} bytes; a model can be shown ${bytesMax}: make it smaller first`
      )
    )
  const bytes = yield* step(() => readWhole(source, { bytesMax }))
  const output = `${shown}: ${type}, ${bytes.length} bytes`
  return { status: "success" as const, output, media: [{ bytes, name: shown }] }
})

const readFrom = Effect.fnUntraced(function* (source: ByteSource, shown: string, given: ReadInput) {
  const begin = yield* step(() => source.read(0))
  const shownType = sniffMedia(begin)
  if (isImageType(shownType) || shownType === pdfType) return yield* showWhole(source, shown, shownType)
  if (isBinary(begin))
    return yield* Effect.fail(
      new ToolFailure("not_text", `${shown} is ${binaryKind(begin)}, ${source.size} bytes, and no text`)
    )
  const request = {
    line: given.offset ?? 1,
    column: given.column ?? 1,
    linesMax: Math.min(given.limit ?? builtinLimits.readLinesMax, builtinLimits.readLinesMax),
    charsMax: builtinLimits.readCharsMax
  }
  const page = yield* readPage(source, request)
  const output = yield* pure(() => shownPage(page, given))
  return { status: "success" as const, output }
})

/** A blob by its name, or a file of the workspace. */
const sourceOf = Effect.fnUntraced(function* ({ blobs, door }: ReadParts, path: string, place: WorkspaceChoice) {
  const sha256 = blobPattern.exec(path)?.[1]
  if (sha256 !== undefined) return { source: yield* step(() => blobSource(blobs, sha256)), shown: path }
  const workspace = yield* door.open(place)
  return yield* Effect.acquireRelease(
    step(() => openFile(workspace, path)),
    ({ close }) => Effect.promise(close)
  )
})

export interface ReadParts {
  readonly door: WorkspaceAccess
  readonly blobs: BlobPort | undefined
}

export const readFileTool = (parts: ReadParts): Tool =>
  defineTool({
    ...looks,
    name: "read_file",
    description:
      "Reads a text file of the workspace, or a page of it by line; shows an image (PNG, JPEG, GIF, WebP) or a PDF document. Long outputs of earlier calls are read the same way, by the blob name their result gives.",
    input,
    access: ({ path }) => (blobPattern.test(path) ? {} : { reads: [path] }),
    preview: ({ path }) => Effect.succeed({ title: `read ${path}` }),
    run: (given, context) =>
      told(
        given.path,
        Effect.flatMap(sourceOf(parts, given.path, context), ({ shown, source }) => readFrom(source, shown, given))
      )
  })
