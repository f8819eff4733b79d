// Checks that only look: at a file, at how much changed, at what must not change.
import { matchesPath } from "../../policy/Glob.ts"
import type { EvidenceSpec } from "../../rune/kinds/evidence.ts"
import type { FileChange } from "../../rune/kinds/plan.ts"
import type { Tools } from "../GoalContext.ts"
import { limits } from "../GoalLimits.ts"
import { type Found, failed, type Place, passedIf } from "./Place.ts"

type Spec<Type extends EvidenceSpec["type"]> = Extract<EvidenceSpec, { readonly type: Type }>

export const checkFile = async ({ look }: Tools, { path }: Spec<"file">, place: Place): Promise<Found> => {
  const { directory, workspace } = place
  const found = await look.file(directory, path)
  if (found._tag === "Found") return passedIf(true, `${path} is there, ${found.bytes} bytes`)
  const isIgnored = directory !== workspace && (await look.file(workspace, path))._tag === "Found"
  return failed(
    isIgnored ? `${path} is in the workspace, but git ignores it: check the command that makes it` : found.reason
  )
}

/** Whether a path of the workspace fits one of the patterns; a directory means all below it. */
export const isAmong = (patterns: ReadonlyArray<string>, path: string): boolean =>
  patterns.some((pattern) => matchesPath(pattern, path) || matchesPath(`${pattern.replace(/\/+$/u, "")}/**`, path))

const shown = (changes: ReadonlyArray<FileChange>): string => {
  const names = changes.slice(0, limits.changesShownMax).map(({ path }) => path)
  const rest = changes.length - names.length
  return `${names.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`
}

const unknown = failed("what changed cannot be told: no git, and too many files to compare")

export const checkUnchanged = async ({ paths }: Spec<"unchanged">, place: Place): Promise<Found> => {
  const changes = await place.changes()
  if (changes === undefined) return unknown
  const touched = changes.filter(({ path }) => isAmong(paths, path))
  return passedIf(
    touched.length === 0,
    touched.length === 0 ? "nothing of it changed" : `changed: ${shown(touched)}; put them back as they were`
  )
}

export const checkDiff = async (spec: Spec<"diff">, place: Place): Promise<Found> => {
  const changes = await place.changes()
  if (changes === undefined) return unknown
  const { max_files: filesMax, max_lines: linesMax, only } = spec
  const lines = changes.reduce((sum, { added = 0, removed = 0 }) => sum + added + removed, 0)
  const uncounted = changes.some(({ added }) => added === undefined)
  const outside = only === undefined ? [] : changes.filter(({ path }) => !isAmong(only, path))
  const problems = [
    filesMax !== undefined && changes.length > filesMax ? `${changes.length} files changed, ${filesMax} may` : "",
    linesMax !== undefined && lines > linesMax ? `${lines} lines changed, ${linesMax} may` : "",
    linesMax !== undefined && uncounted ? "lines of some files cannot be counted" : "",
    outside.length > 0 ? `changed besides: ${shown(outside)}` : ""
  ].filter((problem) => problem !== "")
  return passedIf(problems.length === 0, problems.join("; ") || `${changes.length} files, ${lines} lines`)
}
