// Unified diffs, as `diff -u` and `git diff` print them and as models write them: with or without prefixes, with git's
// extended headers, with counts that may be wrong.
import {
  addedText,
  type FilePatch,
  type Hunk,
  type HunkLine,
  hunkLine,
  type PatchLines,
  withoutReturn
} from "./Patch.ts"

const hunkHeader = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/
const nothing = "/dev/null"

interface FileHeader {
  old: string | undefined
  fresh: string | undefined
  isNew: boolean
  isDeleted: boolean
  isRenamed: boolean
  hasPrefixes: boolean
}

const escapes: Readonly<Record<string, number>> = { n: 10, t: 9, r: 13, '"': 34, "\\": 92 }

/** Git quotes names with unusual bytes, octal and byte by byte. */
const unquoted = (name: string): string => {
  if (!name.startsWith('"') || !name.endsWith('"')) return name
  const bytes: Array<number> = []
  const body = name.slice(1, -1)
  for (let index = 0; index < body.length; index += 1) {
    const [, octal] = /^\\([0-7]{3})/.exec(body.slice(index, index + 4)) ?? []
    if (octal !== undefined) {
      bytes.push(Number.parseInt(octal, 8))
      index += 3
    } else if (body[index] === "\\") {
      index += 1
      bytes.push(escapes[body[index] ?? ""] ?? 63)
    } else bytes.push(...Buffer.from(body.charAt(index), "utf8"))
  }
  return Buffer.from(bytes).toString("utf8")
}

const nameIn = (line: string): string => unquoted(withoutReturn(line.slice(4)).replace(/\t.*$/, "").trim())

const isFileStart = (lines: PatchLines, ahead = 0): boolean =>
  lines.peek(ahead).startsWith("diff --git ") ||
  (lines.peek(ahead).startsWith("--- ") && lines.peek(ahead + 1).startsWith("+++ "))

const extended: ReadonlyArray<readonly [RegExp, (header: FileHeader, match: string) => void]> = [
  [/^new file mode /, (header) => Object.assign(header, { isNew: true })],
  [/^deleted file mode /, (header) => Object.assign(header, { isDeleted: true })],
  [/^rename from (.+)$/, (header, name) => Object.assign(header, { old: unquoted(name), isRenamed: true })],
  [/^rename to (.+)$/, (header, name) => Object.assign(header, { fresh: unquoted(name), isRenamed: true })]
]

const gitNames = /^diff --git (?:a\/(.+) b\/(.+)|(\S+) (\S+))$/

const readGitHeader = (lines: PatchLines, header: FileHeader): void => {
  const names = gitNames.exec(withoutReturn(lines.next()))
  header.old = names?.[1] ?? names?.[3]
  header.fresh = names?.[2] ?? names?.[4]
  while (!lines.isOver && !isFileStart(lines) && !lines.peek().startsWith("@@")) {
    const line = withoutReturn(lines.peek())
    if (line.startsWith("GIT binary patch") || line.startsWith("Binary files "))
      throw lines.fail("binary patches cannot be applied")
    if (line.startsWith("copy from ")) throw lines.fail("copies of files cannot be applied; add the new file")
    for (const [pattern, take] of extended) {
      const match = pattern.exec(line)
      if (match !== null) take(header, match[1] ?? "")
    }
    lines.next()
  }
}

const readHeader = (lines: PatchLines): FileHeader => {
  const header: FileHeader = {
    old: undefined,
    fresh: undefined,
    isNew: false,
    isDeleted: false,
    isRenamed: false,
    hasPrefixes: false
  }
  if (lines.peek().startsWith("diff --git ")) readGitHeader(lines, header)
  if (!lines.peek().startsWith("--- ") || !lines.peek(1).startsWith("+++ ")) return header
  const old = nameIn(lines.next())
  const fresh = nameIn(lines.next())
  header.isNew ||= old === nothing
  header.isDeleted ||= fresh === nothing
  header.hasPrefixes = (old === nothing || old.startsWith("a/")) && (fresh === nothing || fresh.startsWith("b/"))
  const strip = (name: string): string => (header.hasPrefixes && name !== nothing ? name.slice(2) : name)
  if (!header.isRenamed) Object.assign(header, { old: strip(old), fresh: strip(fresh) })
  return header
}

/** The next line begins another hunk or file, as far as counts and looks tell. */
const isBodyOver = (lines: PatchLines, isCounted: boolean): boolean => {
  const line = lines.peek()
  if (lines.isOver || hunkHeader.test(line) || line.startsWith("diff --git ")) return true
  if (isFileStart(lines)) return isCounted || hunkHeader.test(lines.peek(2))
  return isCounted && (lines.isRestEmpty || hunkLine(line) === undefined) && !line.startsWith("\\")
}

const readHunk = (lines: PatchLines): Hunk => {
  const header = withoutReturn(lines.next())
  const [shown = header, oldStart = "0", oldCount = "1", , newCount = "1"] = hunkHeader.exec(header) ?? []
  const body: Array<HunkLine> = []
  let oldSeen = 0
  let newSeen = 0
  let finalNewline: boolean | undefined
  while (!isBodyOver(lines, oldSeen >= Number(oldCount) && newSeen >= Number(newCount))) {
    if (lines.peek().startsWith("\\")) {
      // It speaks of the line before it; what the new text ends with is what counts.
      finalNewline = body.at(-1)?.mark === "-" ? (finalNewline ?? true) : false
      lines.next()
      continue
    }
    const line = hunkLine(lines.peek())
    if (line === undefined) throw lines.fail("a line of a hunk begins with a space, + or -")
    lines.next()
    body.push(line)
    if (line.mark !== "+") oldSeen += 1
    if (line.mark !== "-") newSeen += 1
  }
  const trimmed = oldSeen > Number(oldCount) ? withoutEmptyTail(body) : body
  return {
    header: shown,
    lines: trimmed,
    oldStart: Number(oldStart),
    anchor: undefined,
    isAtEnd: false,
    finalNewline
  }
}

/** Empty lines between a hunk and what follows it are no context. */
const withoutEmptyTail = (body: ReadonlyArray<HunkLine>): ReadonlyArray<HunkLine> => {
  const last = body.findLastIndex(({ mark, text }) => mark !== " " || text !== "")
  return body.slice(0, last + 1)
}

const filePatch = (lines: PatchLines, header: FileHeader, hunks: ReadonlyArray<Hunk>): FilePatch => {
  const { fresh, isDeleted, isNew, isRenamed, old } = header
  if (isNew && fresh !== undefined) {
    const added = hunks.flatMap((hunk) => hunk.lines)
    if (added.some(({ mark }) => mark !== "+")) throw lines.fail(`${fresh} is new and has lines that are not added`)
    return { type: "add", path: fresh, content: addedText(added, hunks.at(-1)?.finalNewline) }
  }
  if (isDeleted && old !== undefined) return { type: "delete", path: old }
  if (old === undefined || fresh === undefined) throw lines.fail("the patch does not name a file")
  if (hunks.length === 0 && !isRenamed) throw lines.fail(`there is no change for ${old}`)
  return { type: "update", path: old, moveTo: fresh === old ? undefined : fresh, hunks }
}

export const readUnified = (lines: PatchLines): ReadonlyArray<FilePatch> => {
  const files: Array<FilePatch> = []
  while (!lines.isOver) {
    if (!isFileStart(lines)) {
      if (hunkHeader.test(lines.peek())) throw lines.fail("a hunk without a file; begin with --- and +++")
      lines.next()
      continue
    }
    const header = readHeader(lines)
    const hunks: Array<Hunk> = []
    while (hunkHeader.test(lines.peek()) && !lines.isOver) hunks.push(readHunk(lines))
    files.push(filePatch(lines, header, hunks))
  }
  return files
}
