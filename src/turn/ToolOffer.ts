// Which tools a model is told of: no more than providers take, under names that they take. The server's own come first,
// then the others in their order, so that the choice is the same every time. What is left out is told to the people of
// the conversation, once.
import { limits as machineLimits } from "../machine/MachineLimits.ts"
import type { ConversationState } from "../machine/State.ts"
import { limits as providerLimits } from "../provider/ProviderLimits.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { PayloadOf } from "../rune/Kinds.ts"
import type { ToolDescription, ToolPort } from "../tool/ToolPort.ts"
import { limits } from "./TurnLimits.ts"

export interface ToolOffer {
  readonly offered: ReadonlyArray<ToolDescription>
  /** For people: what is not offered, and why; empty when all of them are. */
  readonly leftOut: ReadonlyArray<string>
}

type Complaint = PayloadOf<"system.error">

const isFitName = (name: string): boolean => /^[a-zA-Z0-9_-]{1,64}$/u.test(name)

const listed = (names: ReadonlyArray<string>): string => {
  const shown = names.slice(0, limits.leftOutNamesMax).map((name) => name.slice(0, limits.leftOutNameCharsMax))
  const rest = names.length - shown.length
  return `${shown.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`
}

const counted = (count: number): string => (count === 1 ? "1 tool" : `${count} tools`)

const beyond = (names: ReadonlyArray<string>): string =>
  `${counted(names.length)} beyond the ${providerLimits.toolsMax} that a model takes: ${listed(names)}; list the tools that the conversation needs in its "tools"`

const unfit = (names: ReadonlyArray<string>): string =>
  `${counted(names.length)} whose name no provider takes, or that another tool has: ${listed(names)}; a name is 1 to 64 letters, digits, _ and -`

/** The first so many, the server's own before the others; in the order in which they came. */
const chosen = (
  all: ReadonlyArray<ToolDescription>,
  isOwn: (name: string) => boolean
): ReadonlySet<ToolDescription> => {
  const own = all.filter(({ name }) => isOwn(name))
  const others = all.filter((tool) => !own.includes(tool))
  return new Set([...own, ...others].slice(0, providerLimits.toolsMax))
}

export const offerTools = (tools: ToolPort, state: ConversationState, agentId: AgentId): ToolOffer => {
  const described = tools.describe(state, agentId)
  const byName = new Map<string, ToolDescription>()
  for (const tool of described) if (isFitName(tool.name) && !byName.has(tool.name)) byName.set(tool.name, tool)
  const fit = [...byName.values()]
  const isOwn = (name: string): boolean => tools.facts(state, agentId, name)?.provenance === "builtin"
  const kept = fit.length > providerLimits.toolsMax ? chosen(fit, isOwn) : new Set(fit)
  const offered = fit.filter((tool) => kept.has(tool))
  const badNames = described.filter((tool) => byName.get(tool.name) !== tool).map(({ name }) => name)
  const tooMany = fit.filter((tool) => !kept.has(tool)).map(({ name }) => name)
  const elsewhere = (tools.leftOut?.(state, agentId) ?? []).map(
    ({ count, names, origin, reason }) => `${counted(count)} of ${origin}, ${reason}: ${listed(names)}`
  )
  return {
    offered,
    leftOut: [
      ...(badNames.length === 0 ? [] : [unfit(badNames)]),
      ...(tooMany.length === 0 ? [] : [beyond(tooMany)]),
      ...elsewhere
    ]
  }
}

/** What the people of the conversation have to know, unless they have been told. */
export const offerComplaints = ({ notices }: ConversationState, { leftOut }: ToolOffer): ReadonlyArray<Complaint> =>
  leftOut
    .map((what): Complaint => {
      const message = `not offered to the model: ${what}`.slice(0, limits.errorCharsMax).toWellFormed()
      return { code: "tools_left_out", message, retryable: false, source: "orchestrator" }
    })
    .filter(({ code, message }) => {
      // The state remembers an error by its code and its message, cut to a limit.
      const told = `${code}: ${message}`.slice(0, machineLimits.noticeCharsMax)
      return !notices.some((notice) => notice.message === told)
    })
