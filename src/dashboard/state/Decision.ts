// What somebody has to know before deciding about a call, as data: its exact arguments, its reach, why it is asked, and
// what allowing it for longer would be written down as.
import type { ApprovalItem } from "../../client/Client.ts"
import { beyondAscii, visible } from "../../present/VisibleText.ts"
import { ruleText } from "./Rules.ts"

export interface Shown {
  readonly name: string
  readonly text: string
}

const valueText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2))

/** Every argument by name, a text as it is, anything else as JSON. Nothing is left out. */
export const argumentsOf = (value: unknown): ReadonlyArray<Shown> => {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return [{ name: "arguments", text: valueText(value) }]
  return Object.entries(value).map(([name, one]) => ({ name, text: valueText(one) ?? "null" }))
}

/** What a tool shows besides, unless an argument says the same. */
export const previewOf = (item: ApprovalItem): { readonly detail?: string; readonly diff?: string } => {
  const { detail, diff } = item.shown_as ?? {}
  const strings = Object.values((item.arguments ?? {}) as object)
  const isRepeated =
    detail === undefined ||
    detail === "" ||
    strings.includes(detail) ||
    detail === JSON.stringify(item.arguments) ||
    detail === JSON.stringify(item.arguments, null, 2)
  return { ...(isRepeated ? {} : { detail }), ...(diff === undefined || diff === "" ? {} : { diff }) }
}

const isBelow = (path: string, top: string): boolean => path === top || path.startsWith(`${top.replace(/\/$/, "")}/`)

/** Reaches the network, or may write outside its workspace: allowing it takes a second tap where taps are easy. */
export const isFarReaching = ({ shown_as: shown }: ApprovalItem): boolean => {
  if (shown?.network === true) return true
  const { roots = [], workspace } = shown ?? {}
  return workspace !== undefined && roots.some((root) => !isBelow(root, workspace))
}

const reachText = ({ shown_as: shown }: ApprovalItem): string => {
  const roots = shown?.roots ?? []
  const writes = roots.length === 0 ? "" : `may write ${roots.map(visible).join(", ")}`
  const network = shown?.network === undefined ? "" : shown.network ? "with network" : "no network"
  return [writes, network].filter((part) => part !== "").join(" · ")
}

/** Label and text, in the order of importance. */
export const factsOf = (item: ApprovalItem): ReadonlyArray<readonly [string, string]> => {
  const { definition, origin, workspace } = item.shown_as ?? {}
  const letters = beyondAscii(JSON.stringify([item.arguments, item.tool_name]))
  const facts: ReadonlyArray<readonly [string, string]> = [
    ["in", workspace === undefined ? "no workspace" : visible(workspace)],
    ["reach", reachText(item)],
    ["why asked", visible(item.policy_reason)],
    [
      "from",
      origin === undefined ? "" : `${visible(origin)}${definition === undefined ? "" : ` (${definition.slice(0, 12)})`}`
    ],
    ["session allows", item.learns?.session === undefined ? "" : ruleText(item.learns.session)],
    ["rule allows", item.learns?.rule === undefined ? "" : ruleText(item.learns.rule)],
    ["look twice", letters === "" ? "" : `letters beyond ASCII: ${letters}`]
  ]
  return facts.filter(([, text]) => text !== "")
}
