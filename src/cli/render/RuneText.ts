// What a rune says in one line, by its kind. Kinds of a newer server are shown as they are: nothing is left out and
// nothing is guessed.
import type { AnyRune, Kind } from "../../client/Client.ts"
import type { Tone } from "../Verb.ts"
import { type Describe, joined, line, listOf, objectOf, type Payload, type RuneText, textOf } from "./Describing.ts"
import { planTexts } from "./PlanText.ts"
import { duration, money, number, oneLine } from "./Text.ts"

/** Text of a message, which is a string or parts. */
export const contentText = (content: unknown): string => {
  if (typeof content === "string") return content
  return listOf(content)
    .map((part) => {
      const { type, text, name } = objectOf(part)
      return textOf(text) || `[${textOf(type)}${name === undefined ? "" : ` ${textOf(name)}`}]`
    })
    .join(" ")
}

/** Arguments as a person would write them: one value alone, several by name. */
export const argumentsText = (value: unknown): string => {
  const entries = Object.entries(objectOf(value))
  const show = (one: unknown): string => (typeof one === "string" ? oneLine(one) : JSON.stringify(one))
  const [only] = entries
  return entries.length === 1 && only !== undefined
    ? show(only[1])
    : entries.map(([name, one]) => `${name}=${show(one)}`).join(" ")
}

export const usageText = (usage: unknown): string => {
  const { estimated, input_tokens: input, output_tokens: output, usd } = objectOf(usage)
  if (typeof input !== "number" || typeof output !== "number") return ""
  const isFree = input + output === 0
  const cost = money(typeof usd === "number" ? usd : isFree ? 0 : null)
  const tokens = `${estimated === true ? "about " : ""}${number(input)} → ${number(output)} tokens`
  return `${tokens}${cost === "" ? "" : ` ${cost}`}`
}

/** An event of an outside agent: its type, and what it says. */
const outsideEventText = (event: Payload): string => {
  const { content, detail, error, text, tool_name: tool, type } = event
  const said = [tool, text, content, detail, error].map(textOf).filter((one) => one !== "")
  const usage = type === "usage_reported" ? usageText({ ...event, usd: event["cost_usd"] }) : ""
  return joined(textOf(type), oneLine([...said, usage].filter((one) => one !== "").join(" · ")))
}

const resultTones: Readonly<Record<string, Tone>> = { success: "good", denied: "notice", cancelled: "notice" }

const result = (payload: Payload): RuneText => {
  const status = textOf(payload["status"])
  const took = typeof payload["duration_ms"] === "number" ? duration(payload["duration_ms"]) : ""
  const code = payload["exit_code"] === undefined ? "" : `exit ${String(payload["exit_code"])}`
  const said = textOf(payload["output"]) || textOf(objectOf(payload["error"])["message"])
  const isGood = status === "success"
  return {
    tone: resultTones[status] ?? "bad",
    mark: isGood ? "✓" : "✗",
    text: joined(`${textOf(payload["call_id"])} ${status}`, took, code, oneLine(said))
  }
}

const failure = (payload: Payload): string => `${textOf(payload["error_type"])}: ${textOf(payload["message"])}`

/** How long a turn waits, and for whom. */
const waitText = ({ delay_ms: delayMs, provider, waits_for: waitsFor }: Payload): string => {
  if (waitsFor === "person") return `${textOf(provider)} needs a person, then the operation turn.retry`
  const next = `next try in ${duration(Number(delayMs))}`
  return provider === undefined ? next : `waiting for ${textOf(provider)}, ${next}`
}

const reason = (payload: Payload): string => textOf(payload["reason"])
const callAnd = (payload: Payload, ...rest: ReadonlyArray<string>): string =>
  joined(textOf(payload["call_id"]), ...rest)

const runOf = (target: unknown): string => textOf(objectOf(target)["call_id"] ?? objectOf(target)["hook_run_id"])

/** Its reason, else all of its fields. */
const plain: Describe = (payload) => {
  const said = reason(payload)
  return { tone: undefined, mark: "·", text: said === "" ? argumentsText(payload) : oneLine(said) }
}

const described: { readonly [K in Kind]: Describe } = {
  ...planTexts,
  "session.created": line("strong", "◆", ({ config }) =>
    joined(textOf(objectOf(config)["title"]), textOf(objectOf(config)["model"]))
  ),
  "session.activated": line("quiet", "◆", (payload) => textOf(payload["root_agent_id"])),
  "session.closed": line("strong", "◆", ({ final_stats: stats }) => {
    const { turns, tool_calls: calls, usage } = objectOf(stats)
    return joined(`${String(turns ?? 0)} turns`, `${String(calls ?? 0)} tool calls`, usageText(usage))
  }),
  "session.archived": line("strong", "◆", (payload) => textOf(payload["location"])),
  "agent.spawning": line("quiet", "◇", (payload) => joined(textOf(payload["role"]), textOf(payload["model"]))),
  "agent.instructed": line("quiet", "·", ({ parts }) =>
    listOf(parts)
      .map((part) => textOf(objectOf(part)["name"]))
      .join(", ")
  ),
  "agent.failed": line("bad", "✗", ({ error }) => textOf(objectOf(error)["message"])),
  "agent.terminated": line("quiet", "◇", reason),
  "agent.message": line("accent", "✉", ({ content }) => contentText(content)),
  "agent.budget_exhausted": line(
    "bad",
    "✗",
    ({ which, used, limit }) => `${String(which)}: ${String(used)} of ${String(limit)}`
  ),
  "turn.queued": line("accent", "›", ({ input, mode }) => `${mode === "steer" ? "(steer) " : ""}${contentText(input)}`),
  "turn.dequeued": line("quiet", "·", ({ event_ids: ids, reason: why }) =>
    joined(`${listOf(ids).length} queued and dropped`, textOf(why))
  ),
  "turn.started": line("accent", "›", ({ input, target }) =>
    target === undefined ? contentText(input) : `${runOf(target)} runs again`
  ),
  "turn.model_requested": line("quiet", "·", ({ provider, model, attempt }) =>
    joined(`${textOf(provider)}/${textOf(model)}`, Number(attempt) > 1 ? `attempt ${String(attempt)}` : "")
  ),
  "turn.assistant_delta": line("model", "…", ({ content }) => textOf(content)),
  "turn.reasoning_delta": line("quiet", "…", ({ content }) => textOf(content)),
  "turn.assistant_final": line("model", "●", ({ content, items }) => {
    const calls = listOf(items).filter((item) => objectOf(item)["type"] === "tool_call").length
    return joined(
      textOf(content),
      textOf(content) === "" && calls > 0 ? `${calls} tool call${calls === 1 ? "" : "s"}` : ""
    )
  }),
  "turn.tool_calls_received": line("quiet", "·", ({ call_ids: ids }) => listOf(ids).join(" ")),
  "turn.tools_finished": line("quiet", "·", ({ summaries }) =>
    listOf(summaries)
      .map((one) => `${textOf(objectOf(one)["tool_name"])} ${textOf(objectOf(one)["status"])}`)
      .join(", ")
  ),
  "turn.completed": line("good", "✓", ({ usage }) => usageText(usage)),
  "turn.interrupted": line("notice", "■", reason),
  "turn.error": line("bad", "✗", failure),
  "turn.retry_scheduled": line("notice", "↻", (payload) => `${waitText(payload)}: ${failure(payload)}`),
  "turn.retry_started": line("notice", "↻", ({ attempt }) => `attempt ${String(attempt)}`),
  "turn.compacted": line(
    "quiet",
    "·",
    ({ tokens_before: before, tokens_after: after }) => `${String(before)} → ${String(after)} tokens`
  ),
  "tool.call": line("accent", "⚙", (payload) =>
    callAnd(payload, `${textOf(payload["tool_name"])} ${argumentsText(payload["arguments"])}`)
  ),
  "tool.approval_requested": line("notice", "?", (payload) =>
    callAnd(payload, textOf(objectOf(payload["shown_as"])["title"]), textOf(payload["policy_reason"]))
  ),
  "tool.approved": line("good", "✓", (payload) =>
    callAnd(payload, `by ${textOf(payload["approver"])} over ${textOf(payload["channel"])}`, textOf(payload["scope"]))
  ),
  "tool.denied": line("notice", "✗", (payload) =>
    callAnd(payload, `by ${textOf(payload["approver"])}`, reason(payload))
  ),
  "tool.started": line("quiet", "⚙", (payload) => {
    const attempt = Number(payload["attempt"])
    return callAnd(payload, textOf(objectOf(payload["sandbox"])["level"]), attempt > 1 ? `attempt ${attempt}` : "")
  }),
  "tool.progress": line("quiet", "…", (payload) => callAnd(payload, textOf(payload["chunk"]))),
  "tool.result": result,
  "hook.started": line("quiet", "⚙", (payload) => textOf(payload["hook_name"])),
  "hook.completed": line("quiet", "·", ({ error, hook_run_id: id, status }) =>
    joined(`${textOf(id)} ${textOf(status)}`, textOf(objectOf(error)["message"]))
  ),
  "system.error": line("bad", "✗", ({ code, message }) => `${textOf(code)}: ${textOf(message)}`),
  "system.invariant_violation": line("bad", "✗", ({ invariant, detail }) => `${textOf(invariant)}: ${textOf(detail)}`),
  "system.recovered": line("notice", "↻", ({ pending, detail }) =>
    joined(`${String(pending)} pieces of work were open`, listOf(detail).map(String).join(", "))
  ),
  "session.paused": plain,
  "session.resumed": plain,
  "session.suspended": plain,
  "session.unsuspended": plain,
  "session.closing": plain,
  "session.restored": plain,
  "session.forked": plain,
  "agent.ready": plain,
  "agent.state_changed": line("quiet", "◌", ({ state, sub_state }) => textOf(sub_state) || textOf(state)),
  "turn.hooks_finished": plain,
  "harness.attached": line("accent", "⇄", ({ harness, pid }) => `${textOf(harness)} runs as process ${String(pid)}`),
  "harness.event": line("quiet", "·", ({ event }) => outsideEventText(objectOf(event))),
  "harness.input_sent": line("accent", "→", ({ principal, text }) => joined(textOf(text), textOf(principal))),
  "harness.detached": line("notice", "⇥", ({ reason }) => textOf(reason)),
  "harness.recovered": line("notice", "↻", ({ reason }) => textOf(reason)),
  "checkpoint.made": line("quiet", "⎌", ({ checkpoint_id: id, duration_ms: took, reason: why }) =>
    joined(`${textOf(id)} before a ${textOf(why)}`, `${String(took)} ms`)
  ),
  "checkpoint.failed": line("notice", "⎌", ({ message }) => `no checkpoint: ${textOf(message)}`),
  "checkpoint.restored": line("accent", "⎌", ({ checkpoint_id: id, files, saved_as: saved, what }) =>
    joined(`${textOf(what)} back to ${textOf(id)}`, `${String(files)} files`, saved ? `before: ${textOf(saved)}` : "")
  ),
  "config.updated": plain,
  "system.thinned": plain
}

export const runeText = (rune: AnyRune): RuneText =>
  (Object.hasOwn(described, rune.kind) ? described[rune.kind as Kind] : plain)(objectOf(rune.payload))

/** Text that only adds to what is being said: shown as progress, not as lines of its own. */
export const isDelta = (rune: AnyRune): boolean => /_delta$|\.progress$/.test(rune.kind)
