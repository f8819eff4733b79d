// What .gitignore files say of a path: rules are read top down and the last one that applies decides, those of deeper
// directories after those of higher ones.
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import type { Workspace } from "../Workspace.ts"
import { readWhole, withFile } from "./Bytes.ts"
import { type Glob, makeGlob } from "./Glob.ts"

interface Rule {
  readonly glob: Glob
  readonly isNegated: boolean
  readonly directoriesOnly: boolean
}

/** Rules of one file, and the directory it lies in, "" for the root. */
interface RuleFile {
  readonly base: string
  readonly rules: ReadonlyArray<Rule>
}

export type IgnoreRules = ReadonlyArray<RuleFile>

const ruleOf = (line: string): Rule | undefined => {
  const trimmed = line.replace(/\r$/, "").replace(/(?<!\\) +$/, "")
  if (trimmed === "" || trimmed.startsWith("#")) return undefined
  const isNegated = trimmed.startsWith("!")
  const pattern = isNegated ? trimmed.slice(1) : trimmed
  const directoriesOnly = pattern.endsWith("/")
  const body = directoriesOnly ? pattern.replace(/\/+$/, "") : pattern
  return body === "" ? undefined : { glob: makeGlob(body), isNegated, directoriesOnly }
}

export const parseIgnore = (base: string, text: string): RuleFile => ({
  base,
  rules: text.split("\n").flatMap((line) => ruleOf(line) ?? [])
})

const readRules = async (workspace: Workspace, path: string, base: string): Promise<IgnoreRules> => {
  try {
    const bytes = await withFile(workspace, path, (source) =>
      readWhole(source, { bytesMax: builtinLimits.ignoreBytesMax })
    )
    return [parseIgnore(base, bytes.toString("utf8"))]
  } catch (error) {
    // No such file, no text, too long, or a link to elsewhere: then nothing is ignored because of it.
    if (error instanceof ToolFailure) return []
    throw error
  }
}

/** Rules of a directory's own file. */
export const rulesIn = (workspace: Workspace, directory: string): Promise<IgnoreRules> =>
  readRules(workspace, directory === "" ? ".gitignore" : `${directory}/.gitignore`, directory)

/** All rules that hold above a directory, from the root down to the one that holds it. */
export const rulesAbove = async (workspace: Workspace, directory: string): Promise<IgnoreRules> => {
  const rules = [...(await readRules(workspace, ".git/info/exclude", ""))]
  const parts = directory === "" ? [] : directory.split("/")
  for (let depth = 0; depth < parts.length; depth += 1)
    rules.push(...(await rulesIn(workspace, parts.slice(0, depth).join("/"))))
  return rules
}

const below = (base: string, path: string): string | undefined => {
  if (base === "") return path
  return path.startsWith(`${base}/`) ? path.slice(base.length + 1) : undefined
}

export const isIgnored = (rules: IgnoreRules, path: string, kind: { readonly isDirectory: boolean }): boolean => {
  let ignored = false
  for (const { base, rules: ofFile } of rules) {
    const name = below(base, path)
    if (name === undefined) continue
    for (const rule of ofFile) {
      if (rule.directoriesOnly && !kind.isDirectory) continue
      if (rule.glob.matches(name)) ignored = !rule.isNegated
    }
  }
  return ignored
}
