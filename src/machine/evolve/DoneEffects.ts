/**
 * What an agent has done to the world, kept beside its transcript: calls of the class
 * `effect` that ran, with short arguments and outcome. A transcript is cut and summed
 * up, this list is not; every request names those calls that it does not show.
 */
import type { RuneOf } from "../../rune/Rune.ts"
import { canonicalJson } from "../Canonical.ts"
import { limits } from "../MachineLimits.ts"
import type { AgentState, DoneEffect, MutableAgent, MutableCall, MutableDoneEffect } from "../State.ts"

const gap = " … "

/** A text of bounded length: where it is too long, its beginning and its end. */
export const shortened = (text: string, max: number): string => {
  if (text.length <= max) return text
  const kept = Math.max(0, max - gap.length)
  const tail = Math.floor(kept / 3)
  return `${text.slice(0, kept - tail)}${gap}${text.slice(text.length - tail)}`.slice(0, max).toWellFormed()
}

const outcomeOf = ({ error, output }: RuneOf<"tool.result">["payload"]): string =>
  error === undefined ? (output ?? "") : `${error.code}: ${error.message}`

/** The oldest one of the tool that has the most: many calls of one tool do not push out the few of another. */
const leastMissed = (effects: ReadonlyArray<MutableDoneEffect>): number => {
  const times = new Map<string, number>()
  for (const { tool_name: name } of effects) times.set(name, (times.get(name) ?? 0) + 1)
  const most = Math.max(...times.values())
  return effects.findIndex(({ tool_name: name }) => times.get(name) === most)
}

/** A call is over. What never began, and what may be done again without harm, is not remembered. */
export const rememberEffect = (agent: MutableAgent, call: MutableCall, rune: RuneOf<"tool.result">): void => {
  if (call.effect_class !== "effect" || call.attempt === 0) return
  agent.effects.push({
    call_id: call.call_id,
    tool_name: call.tool_name,
    arguments: shortened(canonicalJson(call.arguments), limits.effectArgumentsCharsMax),
    status: rune.payload.status,
    outcome: shortened(outcomeOf(rune.payload).replaceAll(/\s+/gu, " ").trim(), limits.effectOutcomeCharsMax)
  })
  if (agent.effects.length <= limits.effectsMax) return
  agent.effects.splice(leastMissed(agent.effects), 1)
  agent.effects_dropped += 1
}

const lineOf = ({ arguments: args, outcome, status, tool_name: name }: DoneEffect): string => {
  const told = status === "unknown" ? "outcome unknown, it may have taken effect" : status
  return `- ${name} ${args} → ${told}${outcome === "" ? "" : `: ${outcome}`}`
}

/** What the agent has done and its transcript does not show; empty when there is nothing. */
export const effectsText = (agent: AgentState): string => {
  if (agent.effects.length === 0) return ""
  const shown = new Set(
    agent.transcript.flatMap((item) => (item.type === "assistant" ? item.calls : [])).map((one) => one.call_id)
  )
  const hidden = agent.effects.filter((one) => !shown.has(one.call_id))
  if (hidden.length === 0) return ""
  const head =
    "Calls that already ran in this conversation and had effects, oldest first. Do not repeat one by mistake:"
  const dropped = agent.effects_dropped
  const more = `- and ${dropped} more that are not listed: check before you repeat anything that is not here`
  return [head, ...hidden.map(lineOf), ...(dropped === 0 ? [] : [more])].join("\n")
}
