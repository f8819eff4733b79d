// What runes of a goal say in one line.
import type { Kind } from "../../client/Client.ts"
import { type Describe, joined, line, listOf, objectOf, type Payload, textOf } from "./Describing.ts"
import { oneLine } from "./Text.ts"

const reason = (payload: Payload): string => textOf(payload["reason"])
const taskAnd = (payload: Payload, ...rest: ReadonlyArray<string>): string =>
  joined(textOf(payload["task_id"]), ...rest)

const checks = (evidence: unknown): string => {
  const all = listOf(evidence).map(objectOf)
  if (all.length === 0) return ""
  return `${all.filter((one) => one["passed"] === true).length} of ${all.length} checks passed`
}

const tasks = (value: unknown): string =>
  listOf(value)
    .map(objectOf)
    .map((task) => {
      const after = listOf(task["depends_on"]).map(String).join("+")
      return `${after === "" ? "" : `${after} → `}${textOf(task["task_id"])}`
    })
    .join(", ")

const changes = (value: unknown): string =>
  listOf(value)
    .map(objectOf)
    .map((one) => `${textOf(one["type"])} ${textOf(one["task_id"]) || textOf(objectOf(one["task"])["task_id"])}`)
    .join(", ")

const findings = (value: unknown): string =>
  listOf(value)
    .map((one) => textOf(objectOf(one)["title"]))
    .join("; ")

const by = (payload: Payload): string =>
  payload["principal"] === undefined ? "" : `by ${textOf(payload["principal"])}`

const contentText = (content: unknown): string =>
  typeof content === "string"
    ? content
    : listOf(content)
        .map((part) => textOf(objectOf(part)["text"]))
        .join(" ")

const attempt = (payload: Payload): string =>
  Number(payload["attempt"]) > 1 ? `attempt ${String(payload["attempt"])}` : ""

const critique: Describe = (payload) => {
  const isPass = payload["verdict"] === "pass"
  const text = joined(textOf(payload["verdict"]), findings(payload["findings"]))
  return { tone: isPass ? "good" : "notice", mark: isPass ? "✓" : "!", text: oneLine(text) }
}

export const planTexts: { readonly [K in Extract<Kind, `plan.${string}`>]: Describe } = {
  "plan.goal_received": line("strong", "◆", (payload) => textOf(payload["goal"])),
  "plan.planning_started": line("quiet", "◇", attempt),
  "plan.created": line("strong", "◇", (payload) => tasks(payload["tasks"])),
  "plan.baseline_checked": line("quiet", "◇", (payload) =>
    joined(`before the work: ${checks(payload["evidence"])}`, textOf(payload["needs_approval"]))
  ),
  "plan.updated": line("notice", "◇", (payload) => changes(payload["changes"])),
  "plan.approved": line("good", "✓", (payload) => `by ${textOf(payload["approver"])}`),
  "plan.rejected": line("notice", "✗", reason),
  "plan.task_assigned": line("quiet", "·", (payload) => taskAnd(payload, textOf(payload["agent_id"]))),
  "plan.task_started": line("accent", "▸", (payload) => taskAnd(payload, attempt(payload))),
  "plan.task_completed": line("good", "✓", (payload) =>
    taskAnd(payload, checks(payload["evidence"]), textOf(payload["result"]))
  ),
  "plan.task_failed": line("bad", "✗", (payload) =>
    taskAnd(payload, attempt(payload), textOf(objectOf(payload["error"])["message"]))
  ),
  "plan.task_released": line("notice", "↺", (payload) =>
    taskAnd(payload, "does not count", textOf(objectOf(payload["error"])["message"]))
  ),
  "plan.task_returned": line("notice", "↺", (payload) =>
    taskAnd(payload, "to be merged by its worker", textOf(objectOf(payload["error"])["message"]))
  ),
  "plan.task_reopened": line("notice", "↺", (payload) =>
    taskAnd(payload, "open again", textOf(objectOf(payload["error"])["message"]))
  ),
  "plan.task_added": line("notice", "+", (payload) =>
    taskAnd(payload, textOf(objectOf(payload["task"])["title"]), by(payload))
  ),
  "plan.task_edited": line("notice", "◇", (payload) => taskAnd(payload, "changed", by(payload))),
  "plan.task_dropped": line("notice", "–", (payload) => taskAnd(payload, reason(payload), by(payload))),
  "plan.task_retried": line("notice", "↺", (payload) => taskAnd(payload, reason(payload), by(payload))),
  "plan.task_reassigned": line("notice", "↺", (payload) =>
    taskAnd(payload, "to another worker", textOf(payload["model"]), reason(payload), by(payload))
  ),
  "plan.task_reordered": line("notice", "↕", (payload) =>
    taskAnd(
      payload,
      payload["before"] === undefined ? "at the end" : `before ${textOf(payload["before"])}`,
      by(payload)
    )
  ),
  "plan.task_steered": line("notice", "»", (payload) => taskAnd(payload, contentText(payload["content"]), by(payload))),
  "plan.suspended": line("notice", "?", (payload) => joined(textOf(payload["cause"]), textOf(payload["question"]))),
  "plan.resumed": line("quiet", "▸", reason),
  "plan.review_started": line("quiet", "◇", (payload) => `review ${String(payload["iteration"])}`),
  "plan.critique": critique,
  "plan.blocked": line("bad", "■", reason),
  "plan.unblocked": line("quiet", "▸", reason),
  "plan.goal_met": line("good", "✓", (payload) => joined(checks(payload["evidence"]), textOf(payload["summary"]))),
  "plan.stopped": line("bad", "■", (payload) => joined(reason(payload), textOf(payload["summary"])))
}
