// The difference between two texts as a unified diff, for people who decide about an edit. Finds the fewest changed lines
// (Myers), and gives up on that where texts differ too much: then what changed is shown as one block.
import { elementAt } from "../../../rune/Elements.ts"
import { builtinLimits } from "../BuiltinLimits.ts"

interface Change {
  /** Lines of the old text that are replaced: from, up to and without. */
  readonly oldFrom: number
  readonly oldTo: number
  readonly newFrom: number
  readonly newTo: number
}

interface Middle {
  readonly from: number
  readonly oldTo: number
  readonly newTo: number
}

/** The part between what both texts begin with and what both end with. */
const middleOf = (old: ReadonlyArray<string>, fresh: ReadonlyArray<string>): Middle => {
  let from = 0
  while (from < old.length && from < fresh.length && old[from] === fresh[from]) from += 1
  let oldTo = old.length
  let newTo = fresh.length
  while (oldTo > from && newTo > from && old[oldTo - 1] === fresh[newTo - 1]) {
    oldTo -= 1
    newTo -= 1
  }
  return { from, oldTo, newTo }
}

/** For each number of edits, how far each diagonal got; undefined when there are too many edits. */
const trace = (old: ReadonlyArray<string>, fresh: ReadonlyArray<string>): ReadonlyArray<Int32Array> | undefined => {
  const most = Math.min(old.length + fresh.length, builtinLimits.diffEditsMax)
  const reach = new Int32Array(2 * most + 3)
  const steps: Array<Int32Array> = []
  for (let edits = 0; edits <= most; edits += 1) {
    // Only the diagonals that were reached are kept, or long texts would fill the memory.
    steps.push(reach.slice(most + 1 - edits - 1, most + 1 + edits + 2))
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const at = most + 1 + diagonal
      const below = reach[at - 1] ?? 0
      const above = reach[at + 1] ?? 0
      const down = diagonal === -edits || (diagonal !== edits && below < above)
      let x = down ? above : below + 1
      while (x < old.length && x - diagonal < fresh.length && old[x] === fresh[x - diagonal]) x += 1
      reach[at] = x
      if (x >= old.length && x - diagonal >= fresh.length) return steps
    }
  }
  return undefined
}

/** Single edits, last first: a line taken out of the old text, or one put in from the new. */
const backtrack = (steps: ReadonlyArray<Int32Array>, oldLength: number, newLength: number): ReadonlyArray<Change> => {
  const changes: Array<Change> = []
  let x = oldLength
  let y = newLength
  for (let edits = steps.length - 1; edits > 0; edits -= 1) {
    const reach = elementAt(steps, edits)
    const at = (diagonal: number): number => reach[diagonal + edits + 1] ?? 0
    const diagonal = x - y
    const down = diagonal === -edits || (diagonal !== edits && at(diagonal - 1) < at(diagonal + 1))
    const before = down ? diagonal + 1 : diagonal - 1
    const fromX = at(before)
    const fromY = fromX - before
    changes.push(
      down
        ? { oldFrom: fromX, oldTo: fromX, newFrom: fromY, newTo: fromY + 1 }
        : { oldFrom: fromX, oldTo: fromX + 1, newFrom: fromY, newTo: fromY }
    )
    x = fromX
    y = fromY
  }
  return changes.reverse()
}

/** Neighboring edits as one change. */
const joined = (edits: ReadonlyArray<Change>): ReadonlyArray<Change> => {
  const changes: Array<Change> = []
  for (const edit of edits) {
    const last = changes.at(-1)
    if (last !== undefined && last.oldTo === edit.oldFrom && last.newTo === edit.newFrom)
      changes[changes.length - 1] = { ...last, oldTo: edit.oldTo, newTo: edit.newTo }
    else changes.push(edit)
  }
  return changes
}

const changesOf = (old: ReadonlyArray<string>, fresh: ReadonlyArray<string>): ReadonlyArray<Change> => {
  const { from, newTo, oldTo } = middleOf(old, fresh)
  if (from === oldTo && from === newTo) return []
  const oldMiddle = old.slice(from, oldTo)
  const newMiddle = fresh.slice(from, newTo)
  const isLong = oldMiddle.length + newMiddle.length > builtinLimits.diffLinesMax
  const steps = isLong ? undefined : trace(oldMiddle, newMiddle)
  if (steps === undefined) return [{ oldFrom: from, oldTo, newFrom: from, newTo }]
  return joined(backtrack(steps, oldMiddle.length, newMiddle.length)).map((change) => ({
    oldFrom: change.oldFrom + from,
    oldTo: change.oldTo + from,
    newFrom: change.newFrom + from,
    newTo: change.newTo + from
  }))
}

const contextLines = 3

/** Changes that are so near to each other that their context touches are shown together. */
const hunksOf = (changes: ReadonlyArray<Change>): ReadonlyArray<ReadonlyArray<Change>> => {
  const hunks: Array<Array<Change>> = []
  for (const change of changes) {
    const last = hunks.at(-1)
    const end = last?.at(-1)?.oldTo
    if (last !== undefined && end !== undefined && change.oldFrom - end <= 2 * contextLines) last.push(change)
    else hunks.push([change])
  }
  return hunks
}

const noNewline = "\\ No newline at end of file"

const marked = (mark: string, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.flatMap((line) => (line.endsWith("\n") ? [`${mark}${line.slice(0, -1)}`] : [`${mark}${line}`, noNewline]))

const range = (from: number, to: number): string => {
  const count = to - from
  const first = count === 0 ? from : from + 1
  return count === 1 ? `${first}` : `${first},${count}`
}

const hunkLines = (
  hunk: ReadonlyArray<Change>,
  old: ReadonlyArray<string>,
  fresh: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const first = elementAt(hunk, 0)
  const last = elementAt(hunk, hunk.length - 1)
  const before = Math.min(contextLines, first.oldFrom)
  const after = Math.min(contextLines, old.length - last.oldTo)
  const lines: Array<string> = []
  let at = first.oldFrom - before
  for (const change of hunk) {
    lines.push(...marked(" ", old.slice(at, change.oldFrom)))
    lines.push(...marked("-", old.slice(change.oldFrom, change.oldTo)))
    lines.push(...marked("+", fresh.slice(change.newFrom, change.newTo)))
    at = change.oldTo
  }
  lines.push(...marked(" ", old.slice(at, at + after)))
  const header = `@@ -${range(first.oldFrom - before, last.oldTo + after)} +${range(first.newFrom - before, last.newTo + after)} @@`
  return [header, ...lines]
}

/** Lines with what ends them. */
export const linesOf = (text: string): ReadonlyArray<string> => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

export interface Sides {
  /** Nothing on one side: the file is new, or goes away. */
  readonly before: string | undefined
  readonly after: string | undefined
}

/** A unified diff; empty when there is no difference. */
export const unifiedDiff = (path: string, { after, before }: Sides): string => {
  const old = linesOf(before ?? "")
  const fresh = linesOf(after ?? "")
  const hunks = hunksOf(changesOf(old, fresh))
  const isSame = hunks.length === 0 && (before === undefined) === (after === undefined)
  if (isSame) return ""
  const names = [
    before === undefined ? "--- /dev/null" : `--- a/${path}`,
    after === undefined ? "+++ /dev/null" : `+++ b/${path}`
  ]
  return `${[...names, ...hunks.flatMap((hunk) => hunkLines(hunk, old, fresh))].join("\n")}\n`
}
