// Searches with ripgrep, in the sandbox. It is ended as soon as enough was found.
import { accessSync, constants, statSync } from "node:fs"
import { delimiter, join, relative } from "node:path"
import * as Effect from "effect/Effect"
import type { ProcessPort } from "../../../sandbox/process/ProcessPort.ts"
import { type NotBegun, retryIfOutdated, startProcess } from "../../../sandbox/process/ProcessWork.ts"
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { Gathered, shownText } from "./Gather.ts"
import type { FoundLine, SearchRequest, SearchResult } from "./Port.ts"

/** Whether there is a program of that name in one of the directories of a path variable. */
export const hasProgram = (name: string, path: string): boolean =>
  path.split(delimiter).some((directory) => {
    try {
      const file = join(directory, name)
      accessSync(file, constants.X_OK)
      return statSync(file).isFile()
    } catch {
      // Not there, or not for us: either way it cannot be used.
      return false
    }
  })

const fixedArguments: ReadonlyArray<string> = [
  "--no-config",
  "--color=never",
  "--line-number",
  "--with-filename",
  "--no-heading",
  "--null",
  "--no-messages",
  "--no-follow",
  "--hidden",
  "--no-require-git",
  "--no-ignore-dot",
  "--no-ignore-global",
  "--sort=path",
  `--max-filesize=${builtinLimits.searchFileBytesMax}`
]

const argumentsOf = ({
  contextLines,
  globs,
  ignoreCase,
  includeIgnored,
  isPlainText,
  path,
  pattern,
  workspace
}: SearchRequest) => [
  "rg",
  ...fixedArguments,
  ignoreCase ? "--ignore-case" : "--case-sensitive",
  ...(isPlainText ? ["--fixed-strings"] : []),
  ...(includeIgnored ? ["--no-ignore"] : []),
  ...(contextLines > 0 ? [`--context=${contextLines}`] : []),
  ...globs.map((glob) => `--glob=${glob}`),
  "--glob=!.git",
  // The last pattern that applies decides.
  ...workspace.ownBelow().map((own) => `--glob=!/${relative(workspace.root, own)}`),
  `--regexp=${pattern}`,
  "--",
  `./${path}`
]

const lineForm = /^(\d+)([:-])/

/** One line of output: path, NUL, number, `:` for a match or `-` for its surroundings, text. */
const foundIn = (line: string): FoundLine | undefined => {
  const end = line.indexOf("\0")
  if (end < 0) return undefined
  const rest = line.slice(end + 1)
  const form = lineForm.exec(rest)
  if (form === null) return undefined
  return {
    path: line.slice(0, end).replace(/^(\.\/)+/, ""),
    line: Number(form[1]),
    text: shownText(rest.slice(form[0].length)),
    isMatch: form[2] === ":"
  }
}

const newline = 0x0a

/** Cuts output into lines; memory holds one line at most, and of a long one its beginning. */
class Lines {
  private readonly onLine: (line: string) => void
  private pending: Array<Buffer> = []
  private size = 0

  constructor(onLine: (line: string) => void) {
    this.onLine = onLine
  }

  add(bytes: Buffer): void {
    let from = 0
    for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, from)) {
      this.keep(bytes.subarray(from, at))
      this.onLine(Buffer.concat(this.pending).toString("utf8"))
      this.pending = []
      this.size = 0
      from = at + 1
    }
    this.keep(bytes.subarray(from))
  }

  private keep(bytes: Buffer): void {
    const room = builtinLimits.searchFileBytesMax - this.size
    if (bytes.length > 0 && room > 0) this.pending.push(Buffer.from(bytes.subarray(0, room)))
    this.size += bytes.length
  }
}

const complaintCharsMax = 2_000

/** Nothing found is 1 without a word; all else that is not 0 has a reason. */
const isDone = (exitCode: number | null, complaint: string): boolean =>
  exitCode === 0 || (exitCode === 1 && complaint === "")

const search = Effect.fnUntraced(function* (processes: ProcessPort, request: SearchRequest) {
  const gathered = new Gathered(request.matchesMax)
  const enough = Promise.withResolvers<"enough">()
  let complaint = ""
  const lines = new Lines((line) => {
    const found = foundIn(line)
    if (found !== undefined && !gathered.add(found)) enough.resolve("enough")
  })
  const running = yield* startProcess(processes, {
    argv: argumentsOf(request),
    directory: request.workspace.root,
    // The sandbox shows of homes and temporary places what may be written to; ripgrep has no way to write.
    writable: [request.workspace.root],
    network: false,
    onOutput: (stream, bytes) => {
      if (stream === "stdout") lines.add(bytes)
      else complaint = `${complaint}${bytes.toString("utf8")}`.slice(0, complaintCharsMax)
    }
  })
  running.endInput()
  const over = yield* Effect.promise(() => Promise.race([enough.promise, running.ended]))
  const why = complaint.trim()
  return over === "enough" || isDone(over.exit_code, why)
    ? gathered.result()
    : yield* Effect.fail(new ToolFailure("search_failed", why || "ripgrep was ended"))
}, Effect.scoped)

/** Fails with what keeps ripgrep from starting, besides what a search fails with. */
export const ripgrep =
  (processes: ProcessPort) =>
  (request: SearchRequest): Effect.Effect<SearchResult, ToolFailure | NotBegun> =>
    retryIfOutdated(search(processes, request))
