// Runes that are one line of a transcript: what happened around the words and the tools. Kinds that say nothing to a reader
// have no line; the raw view shows them all.

import { duration, money, plural } from "./Format.ts"
import { contentText, listOf, numberOf, objectOf, type Payload, textOf } from "./Payload.ts"

export type NoteTone = "quiet" | "good" | "bad" | "warm"
export type Note = readonly [tone: NoteTone, text: string]

const because = (payload: Payload, words: string): string => {
  const reason = textOf(payload["reason"])
  return reason === "" ? words : `${words}: ${reason}`
}

const failure = (payload: Payload): string => `${textOf(payload["error_type"])}: ${textOf(payload["message"])}`

const retry = (payload: Payload): Note => {
  const who = textOf(payload["provider"]) || "the model"
  return payload["waits_for"] === "person"
    ? ["warm", `${who} needs a person. ${failure(payload)}`]
    : ["warm", `Waiting for ${who}, next try in ${duration(numberOf(payload["delay_ms"]))}. ${failure(payload)}`]
}

const met = (payload: Payload): Note => {
  const changes = listOf(payload["changes"]).length
  const usd = objectOf(payload["usage"])["usd"]
  const cost = typeof usd === "number" ? ` for ${money(usd)}` : ""
  return [
    "good",
    `Goal met${cost}${changes === 0 ? "" : `, ${plural(changes, "file")} changed`}. ${textOf(payload["summary"])}`
  ]
}

const critique = (payload: Payload): Note => {
  const findings = listOf(payload["findings"]).map((one) => textOf(objectOf(one)["title"]))
  return ["quiet", `Review: ${textOf(payload["verdict"])}${findings.length === 0 ? "" : ` (${findings.join("; ")})`}`]
}

const notes: Readonly<Record<string, (payload: Payload) => Note>> = {
  "session.paused": (payload) => ["warm", because(payload, "Paused")],
  "session.resumed": () => ["quiet", "Resumed"],
  "session.suspended": (payload) => ["warm", because(payload, "Suspended")],
  "session.unsuspended": () => ["quiet", "Continued"],
  "session.closing": (payload) => ["quiet", because(payload, "Closing")],
  "session.closed": () => ["quiet", "Closed"],
  "session.archived": () => ["quiet", "Archived"],
  "session.restored": () => ["quiet", "Restored from the archive"],
  "session.forked": ({ at_event_id: at, from }) => ["quiet", `Copied from ${textOf(from)} at rune ${String(at)}`],
  "agent.spawning": ({ model, name, role }) => ["quiet", `${textOf(name) || textOf(role)} starts (${textOf(model)})`],
  "agent.failed": ({ error }) => ["bad", `Could not start: ${textOf(objectOf(error)["message"])}`],
  "agent.terminated": (payload) => ["quiet", because(payload, "Ended")],
  "agent.message": ({ content }) => ["quiet", `Message: ${contentText(content)}`],
  "agent.budget_exhausted": ({ limit, used, which }) => [
    "bad",
    `Budget used up: ${textOf(which)} ${String(used)} of ${String(limit)}`
  ],
  "turn.interrupted": (payload) => ["warm", because(payload, "Stopped")],
  "turn.error": (payload) => ["bad", `Turn failed. ${failure(payload)}`],
  "turn.retry_scheduled": retry,
  "turn.compacted": ({ tokens_after: after, tokens_before: before }) => [
    "quiet",
    `Older messages summarized (${String(before)} → ${String(after)} tokens)`
  ],
  "turn.dequeued": (payload) => ["warm", because(payload, "Queued input dropped")],
  "hook.completed": ({ duration_ms: ms, error, status }) =>
    status === "succeeded"
      ? ["quiet", `Hook done in ${duration(numberOf(ms))}`]
      : ["bad", `Hook ${textOf(status)}: ${textOf(objectOf(error)["message"])}`],
  "plan.goal_received": ({ goal }) => ["quiet", `Goal: ${textOf(goal)}`],
  "plan.created": ({ needs_approval: why, tasks }) => [
    why === undefined ? "quiet" : "warm",
    `Plan of ${plural(listOf(tasks).length, "task")}${why === undefined ? "" : `, waits for a person: ${textOf(why)}`}`
  ],
  "plan.approved": ({ approver }) => ["good", `Plan approved by ${textOf(approver)}`],
  "plan.rejected": ({ approver, reason }) => ["warm", `Plan sent back by ${textOf(approver)}: ${textOf(reason)}`],
  "plan.task_started": ({ attempt, task_id: id }) => [
    "quiet",
    `Task ${textOf(id)} begins${numberOf(attempt) > 1 ? ` (attempt ${String(attempt)})` : ""}`
  ],
  "plan.task_completed": ({ evidence, task_id: id }) => [
    "good",
    `Task ${textOf(id)} done, ${plural(listOf(evidence).length, "proof")} checked`
  ],
  "plan.task_failed": ({ error, task_id: id }) => [
    "bad",
    `Task ${textOf(id)} failed: ${textOf(objectOf(error)["message"])}`
  ],
  "plan.task_released": ({ error, task_id: id }) => [
    "warm",
    `Task ${textOf(id)} is done again: ${textOf(objectOf(error)["message"])}`
  ],
  "plan.task_returned": ({ error, task_id: id }) => [
    "warm",
    `Task ${textOf(id)} is merged by its worker: ${textOf(objectOf(error)["message"])}`
  ],
  "plan.task_reopened": ({ error, task_id: id }) => [
    "warm",
    `Task ${textOf(id)} is open again: ${textOf(objectOf(error)["message"])}`
  ],
  "plan.baseline_checked": ({ evidence, needs_approval: why }) => [
    why === undefined ? "quiet" : "warm",
    `${plural(listOf(evidence).length, "check")} ran before the work${why === undefined ? "" : `; waits for a person: ${textOf(why)}`}`
  ],
  "plan.task_added": ({ task_id: id }) => ["warm", `Task ${textOf(id)} added`],
  "plan.task_edited": ({ task_id: id }) => ["warm", `Task ${textOf(id)} changed; it begins anew`],
  "plan.task_dropped": (payload) => ["warm", because(payload, `Task ${textOf(payload["task_id"])} dropped`)],
  "plan.task_retried": (payload) => ["warm", because(payload, `Task ${textOf(payload["task_id"])} is done again`)],
  "plan.task_reassigned": (payload) => [
    "warm",
    because(payload, `Task ${textOf(payload["task_id"])} goes to another worker`)
  ],
  "plan.task_reordered": ({ task_id: id }) => ["quiet", `Task ${textOf(id)} moved`],
  "plan.task_steered": ({ content, task_id: id }) => ["warm", `To the worker of ${textOf(id)}: ${textOf(content)}`],
  "plan.suspended": ({ question }) => ["warm", `Goal waits for you: ${textOf(question)}`],
  "plan.resumed": (payload) => ["quiet", because(payload, "Goal resumed")],
  "plan.review_started": ({ iteration }) => ["quiet", `Review ${String(iteration)} begins`],
  "plan.critique": critique,
  "plan.blocked": (payload) => ["warm", because(payload, "Blocked")],
  "plan.goal_met": met,
  "plan.stopped": (payload) => ["warm", because(payload, "Goal stopped")],
  "system.error": ({ code, message }) => ["bad", `${textOf(code)}: ${textOf(message)}`],
  "system.invariant_violation": ({ detail, invariant }) => ["bad", `${textOf(invariant)}: ${textOf(detail)}`],
  "system.recovered": ({ pending }) => ["warm", `The server restarted; ${String(pending)} pieces of work continue`]
}

export const noteOf = (kind: string, payload: Payload): Note | undefined =>
  Object.hasOwn(notes, kind) ? notes[kind]?.(payload) : undefined
