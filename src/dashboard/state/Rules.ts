// Rules of a policy in words, and what history says about them.
import { visible, visibleJson } from "../../present/VisibleText.ts"
import { plural } from "./Format.ts"

/** What a rule is about: tool, command, paths or hosts, and where. */
export const ruleText = (rule: unknown): string => {
  const { access, command, definition, host, network, path, tool, uncontained, workspace } = (rule ?? {}) as Readonly<
    Record<string, unknown>
  >
  const listed = [command, path, host].find((one) => one !== undefined)
  // A list of one pattern is that pattern; the words of a command stay a list, so that each is seen as a word.
  const what = command === undefined && Array.isArray(listed) && listed.length === 1 ? listed[0] : listed
  const tools = tool === undefined ? "every tool" : [tool].flat().map(String).join(", ")
  const more = [
    access === undefined ? "" : ` (${String(access)})`,
    workspace === undefined ? "" : ` in ${visible(String(workspace))}`,
    network === true ? ", with network" : "",
    uncontained === true ? ", also where nothing contains it" : "",
    definition === undefined ? "" : ", as it is defined now"
  ]
  return `${visible(tools)} ${what === undefined ? "every call" : visibleJson(what)}${more.join("")}`
}

export const decisionOf = (rule: unknown): string =>
  String((rule as { readonly decision?: unknown } | null)?.decision ?? "")

export const reasonOf = (rule: unknown): string => {
  const { reason } = (rule ?? {}) as { readonly reason?: unknown }
  return typeof reason === "string" ? reason : ""
}

export interface RuleRecord {
  readonly ran: number
  readonly approved: number
  readonly denied: number
  readonly other: number
}

/** "14 calls: 10 ran unasked, 3 allowed by people, 1 denied". */
export const recordText = ({ approved, denied, other, ran }: RuleRecord): string => {
  const all = ran + approved + denied + other
  if (all === 0) return "no call on record"
  const parts: ReadonlyArray<readonly [number, string]> = [
    [ran, "ran unasked"],
    [approved, "allowed by people"],
    [denied, "denied"],
    [other, "never decided"]
  ]
  const told = parts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`)
  return `${plural(all, "call")}: ${told.join(", ")}`
}
