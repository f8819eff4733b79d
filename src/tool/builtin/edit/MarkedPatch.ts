// The patch form that names files by `*** Add File:`, `*** Update File:` and `*** Delete File:`, and finds places by the
// lines around them instead of line numbers.
import {
  addedText,
  type FilePatch,
  type Hunk,
  type HunkLine,
  hunkLine,
  type PatchLines,
  withoutReturn
} from "./Patch.ts"

const fileHeader = /^\*\*\* (Add|Update|Delete) File: (.+)$/
const moveHeader = /^\*\*\* Move to: (.+)$/
const endOfFile = "*** End of File"
const isFileOver = (line: string): boolean => fileHeader.test(line) || line === "*** End Patch"

const readAdded = (lines: PatchLines, path: string): FilePatch => {
  const added: Array<HunkLine> = []
  while (!lines.isOver && !isFileOver(withoutReturn(lines.peek()))) {
    const line = hunkLine(lines.peek())
    if (line?.mark !== "+") {
      if (lines.peek().trim() !== "") throw lines.fail(`a line of the new file ${path} begins with +`)
      lines.next()
      continue
    }
    lines.next()
    added.push(line)
  }
  return { type: "add", path, content: addedText(added, undefined) }
}

const isHunkOver = (line: string): boolean => isFileOver(line) || line.startsWith("@@") || line === endOfFile

const readHunk = (lines: PatchLines, number: number): Hunk => {
  const header = lines.peek().startsWith("@@") ? withoutReturn(lines.next()) : ""
  const anchor = header.replace(/^@@ ?/, "").replace(/ ?@@$/, "")
  const body: Array<HunkLine> = []
  while (!lines.isOver && !isHunkOver(withoutReturn(lines.peek()))) {
    const line = hunkLine(lines.peek())
    if (line === undefined) throw lines.fail("a line of a hunk begins with a space, + or -")
    lines.next()
    body.push(line)
  }
  const isAtEnd = withoutReturn(lines.peek()) === endOfFile && !lines.isOver
  if (isAtEnd) lines.next()
  return {
    header: anchor === "" ? `hunk ${number}` : `hunk ${number} (@@ ${anchor})`,
    lines: body,
    oldStart: undefined,
    anchor: anchor.trim() === "" ? undefined : anchor,
    isAtEnd,
    finalNewline: undefined
  }
}

const readUpdated = (lines: PatchLines, path: string): FilePatch => {
  const moveTo = moveHeader.exec(withoutReturn(lines.peek()))?.[1]?.trim()
  if (moveTo !== undefined) lines.next()
  const hunks: Array<Hunk> = []
  while (!lines.isOver && !isFileOver(withoutReturn(lines.peek()))) {
    if (lines.isRestEmpty) break
    const hunk = readHunk(lines, hunks.length + 1)
    // A header that is followed by another narrows the place down further; the last one counts.
    if (hunk.lines.length > 0) hunks.push(hunk)
  }
  if (hunks.length === 0 && moveTo === undefined) throw lines.fail(`there is no change for ${path}`)
  return { type: "update", path, moveTo, hunks }
}

export const readMarked = (lines: PatchLines): ReadonlyArray<FilePatch> => {
  lines.next()
  const files: Array<FilePatch> = []
  while (!lines.isOver) {
    const line = withoutReturn(lines.peek())
    if (line === "*** End Patch") return files
    const header = fileHeader.exec(line)
    if (header === null) {
      if (line.trim() !== "") throw lines.fail(`expected "*** Add File:", "*** Update File:" or "*** Delete File:"`)
      lines.next()
      continue
    }
    lines.next()
    const [, action, name = ""] = header
    const path = name.trim()
    if (action === "Delete") files.push({ type: "delete", path })
    else files.push(action === "Add" ? readAdded(lines, path) : readUpdated(lines, path))
  }
  // The end marker is missing: the patch may have been cut off.
  throw lines.fail(`"*** End Patch" is missing`)
}
