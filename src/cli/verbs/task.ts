// `echs task`: changes single tasks of a goal while it is pursued, and speaks to their workers.
import type { Client, Fields } from "../../client/Client.ts"
import { commands } from "../goal/Options.ts"
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { oneLine } from "../render/Text.ts"
import { type ExitCode, exitCode, type Terminal, type Verb } from "../Verb.ts"
import { type OptionTable, oneOf, UsageError, type Values, wholeNumber } from "../VerbSpec.ts"

const options = {
  title: { type: "string", value: "TEXT", help: "add, edit: the task in one line" },
  instructions: { type: "string", value: "TEXT", help: "add, edit: what the worker is told" },
  check: {
    type: "string",
    value: "COMMAND",
    multiple: true,
    help: "add, edit: shows that the task is done when it exits with 0; repeatable"
  },
  after: {
    type: "string",
    value: "TASK",
    multiple: true,
    help: "add, edit: tasks that must be done first; repeatable"
  },
  priority: { type: "string", value: "PRIORITY", help: "add, edit, reorder: critical, high, medium or low" },
  before: { type: "string", value: "TASK", help: "add, reorder: in front of this task (default: at the end)" },
  model: { type: "string", value: "MODEL", help: "add, edit, reassign: the model that works on it" },
  role: { type: "string", value: "ROLE", help: "add, edit, reassign: the role of its worker" },
  reason: { type: "string", value: "TEXT", help: "drop, retry, reassign: reason; the next worker sees it" },
  revision: { type: "string", value: "NUMBER", help: "revision of the plan you saw; refused if it has changed" },
  wait: { type: "boolean", help: "steer: wait until the model has read it" }
} as const satisfies OptionTable

type TaskValues = Values<typeof options>

const actions = ["add", "edit", "drop", "retry", "reassign", "reorder", "steer"] as const
type Action = (typeof actions)[number]

const given = <Value extends object>(fields: Value) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    readonly [Name in keyof Value]?: Exclude<Value[Name], undefined>
  }

const priorities = ["critical", "high", "medium", "low"] as const

const chosen = ({ after, check, instructions, model, priority, role, title }: TaskValues) =>
  given({
    title,
    instructions,
    evidence: check === undefined ? undefined : commands(check),
    depends_on: after,
    priority: oneOf("priority", priority, priorities),
    model,
    role
  })

/** The fields that each action takes besides the task it is about. */
const extraOf = (action: Action, values: TaskValues, text: string | undefined): object => {
  const { before, model, reason, role } = values
  switch (action) {
    case "add": {
      const fields = chosen(values)
      if (fields.instructions === undefined) throw new UsageError("--instructions is missing: say what is to be done")
      if (fields.evidence === undefined) throw new UsageError("--check is missing: say how it is shown to be done")
      return { title: fields.instructions.split("\n", 1)[0]?.slice(0, 80), ...fields, ...given({ before }) }
    }
    case "edit":
      return chosen(values)
    case "drop":
    case "retry":
      return given({ reason })
    case "reassign":
      return given({ reason, model, role })
    case "reorder":
      return given({ before, priority: oneOf("priority", values.priority, priorities) })
    case "steer":
      if (text === undefined || text.trim() === "") throw new UsageError("steer: TEXT is missing")
      return { content: text }
  }
}

const planIdOf = async (client: Client, conversationId: string): Promise<string> => {
  const { plan } = await client.call("conversation.get", { conversation_id: conversationId })
  if (plan === null) throw new UsageError(`${conversationId} has no goal`)
  return plan.plan_id
}

/** Follows the conversation until the model of the worker answered with it in what it was sent, or the worker is gone. */
const untilRead = async (
  client: Client,
  of: { readonly conversationId: string; readonly eventId: number },
  terminal: Terminal
): Promise<number | undefined> => {
  const { conversationId, eventId } = of
  const signal = terminal.interruption()
  for await (const item of client.tail(conversationId, { after: eventId, signal })) {
    if (!("rune" in item) || !followed.has(item.rune.kind)) continue
    const { plan } = await client.call("conversation.get", { conversation_id: conversationId })
    const steer = plan?.steers.findLast((one) => one.event_id <= eventId)
    if (steer?.read_event_id != null) return steer.read_event_id
    const isHeard = plan?.tasks.some((one) => one.agent_id === steer?.agent_id && isWorkedOn(one.status)) === true
    if (!isHeard) return undefined
  }
  return undefined
}

const isWorkedOn = (status: string): boolean => status === "assigned" || status === "running"

const followed: ReadonlySet<string> = new Set([
  "turn.assistant_final",
  "plan.task_completed",
  "plan.task_failed",
  "plan.task_released",
  "plan.task_edited",
  "plan.task_dropped",
  "plan.task_reassigned",
  "plan.stopped"
])

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "task",
    takes: "add|edit|drop|retry|reassign|reorder|steer CONVERSATION TASK [TEXT]",
    positionals: { min: 3, max: 4 },
    options,
    example: "echs task edit last parser --instructions 'leave the public names alone'",
    notes: ["echs plan show CONVERSATION lists the tasks with their ids."],
    run: async ({ answer, client, positionals: [what = "", named = "", taskId = "", text], terminal, values }) => {
      const action = oneOf("action", what, actions)
      if (action === undefined) throw new UsageError(`unknown action; use ${actions.join(", ")}`)
      if (text !== undefined && action !== "steer") throw new UsageError(`${action} takes CONVERSATION and TASK`)
      const extra = extraOf(action, values, text)
      const revision = wholeNumber("revision", values.revision, 1)
      const conversationId = await findConversation(client, named, parts.workingDirectory())
      const planId = await planIdOf(client, conversationId)
      const ids = { conversation_id: conversationId, plan_id: planId, task_id: taskId }
      const fields = { ...ids, ...given({ revision }), ...extra } as Fields<"plan.task.add">
      const done = await client.call(`plan.task.${action}`, fields)
      const isRead = action === "steer" && values.wait === true
      const read = isRead ? await untilRead(client, { conversationId, eventId: done.event_id }, terminal) : undefined
      const seen = isRead ? { read_event_id: read ?? null } : {}
      answer(
        { ...ids, ...done, ...seen },
        () => `${oneLine(taskId)}: ${words(action)}${isRead ? readText(read) : ""}\n`
      )
      return isRead && read === undefined ? unread(terminal) : exitCode.done
    }
  })

const words = (action: Action): string =>
  ({
    add: "added",
    edit: "changed; it begins anew",
    drop: "dropped",
    retry: "is done again",
    reassign: "goes to another worker",
    reorder: "moved",
    steer: "said"
  })[action]

const readText = (read: number | undefined): string => (read === undefined ? "" : `, and read (event ${read})`)

const unread = (terminal: Terminal): ExitCode => {
  terminal.complain("echs task: the worker ended before it had read this; edit the task instead\n")
  return exitCode.failed
}
