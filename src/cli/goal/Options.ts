// What `echs goal` takes, and what it makes of it for the server. Everything the protocol knows about a goal has a flag; a
// value that makes no sense is told by the name of its flag before anything is sent.
import { resolve } from "node:path"
import type { Fields } from "../../client/Wire.ts"
import { type OptionTable, oneOf, UsageError, type Values, wholeNumber } from "../VerbSpec.ts"

export const goalOptions = {
  model: { type: "string", short: "m", value: "MODEL", help: "provider/name" },
  workspace: { type: "string", short: "w", value: "DIRECTORY", help: "where to work (default: this directory)" },
  "unsafe-workspace": { type: "boolean", help: "work there also when it is a home or belongs to the system" },
  title: { type: "string", value: "TEXT", help: "of the conversation (default: the goal)" },
  policy: { type: "string", value: "MODE", help: "read_only, auto or full_access (default: auto, which asks)" },
  in: { type: "string", value: "CONVERSATION", help: "pursue it in a conversation that is there already" },
  parallel: { type: "string", value: "COUNT", help: "how many tasks may run at once (default: 3)" },
  worktrees: { type: "boolean", help: "every worker in a git worktree of its own, merged when its task is done" },
  review: { type: "boolean", help: "show the plan and wait for a yes before anything is done" },
  tokens: { type: "string", value: "COUNT", help: "stop when this many tokens are used" },
  usd: { type: "string", value: "AMOUNT", help: "stop when this much money is spent" },
  "tool-calls": { type: "string", value: "COUNT", help: "stop when this many tools were called" },
  time: { type: "string", value: "TIME", help: "stop when this much time is over: 90s, 30m, 2h or 1d" },
  "task-tokens": { type: "string", value: "COUNT", help: "how many tokens each worker may use" },
  "task-usd": { type: "string", value: "AMOUNT", help: "how much money each worker may spend" },
  "task-tool-calls": { type: "string", value: "COUNT", help: "how many tools each worker may call" },
  "task-time": { type: "string", value: "TIME", help: "how much time each worker may take" },
  "max-iterations": { type: "string", value: "COUNT", help: "stop after this many reviews (default: 10)" },
  "max-replans": { type: "string", value: "COUNT", help: "stop when more new plans are asked for (default: 3)" },
  "stall-tokens": { type: "string", value: "COUNT", help: "stop when this many are used without a finished task" },
  detach: { type: "boolean", short: "d", help: "hand it over and do not follow" }
} as const satisfies OptionTable

type GoalValues = Values<typeof goalOptions>

const amount = (name: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const value = Number(text)
  if (!/^\d+(\.\d+)?$/.test(text) || value <= 0) throw new UsageError(`--${name} is an amount above 0`)
  return value
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const timeMs = (name: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const [, digits = "", unit = ""] = /^([1-9]\d{0,5})([smhd])$/.exec(text) ?? []
  if (digits === "") throw new UsageError(`--${name} is a number from 1 on and s, m, h or d`)
  return Number(digits) * unitMs[unit]!
}

type Given<Fields> = { readonly [Name in keyof Fields]?: Exclude<Fields[Name], undefined> }

/** Without what was left out. */
const given = <const Fields extends object>(fields: Fields): Given<Fields> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<Fields>

const budgetOf = (values: GoalValues, of: "" | "task-") =>
  given({
    tokens: wholeNumber(`${of}tokens`, values[`${of}tokens`], 1),
    usd: amount(`${of}usd`, values[`${of}usd`]),
    tool_calls: wholeNumber(`${of}tool-calls`, values[`${of}tool-calls`], 1),
    wall_ms: timeMs(`${of}time`, values[`${of}time`])
  })

const unlessEmpty = <Value extends object>(value: Value): Value | undefined =>
  Object.keys(value).length === 0 ? undefined : value

/** What a conversation that is there already has; a goal in it cannot choose it anew. */
const creating = ["model", "workspace", "unsafe-workspace", "title", "policy"] as const

const placeOf = (values: GoalValues, workingDirectory: string) => {
  const mode = oneOf("policy", values.policy, ["read_only", "auto", "full_access"])
  return given({
    workspace: resolve(workingDirectory, values.workspace ?? ""),
    unsafe_workspace: values["unsafe-workspace"],
    policy: mode === undefined ? undefined : { mode },
    model: values.model,
    title: values.title
  })
}

/** The fields of `goal.submit`, the goal and the conversation it is for left out. */
export const goalFields = (values: GoalValues, workingDirectory: string): Omit<Fields<"goal.submit">, "goal"> => {
  const clash = creating.find((name) => values.in !== undefined && values[name] !== undefined)
  if (clash !== undefined) throw new UsageError(`--${clash} is chosen with a new conversation, not with --in`)
  const options = given({
    worktrees: values.worktrees,
    max_iterations: wholeNumber("max-iterations", values["max-iterations"], 1),
    max_replans: wholeNumber("max-replans", values["max-replans"]),
    tokens_without_progress: wholeNumber("stall-tokens", values["stall-tokens"], 1),
    task_budget: unlessEmpty(budgetOf(values, "task-"))
  })
  return {
    auto_start: values.review !== true,
    ...(values.in === undefined ? placeOf(values, workingDirectory) : {}),
    ...given({
      budget: unlessEmpty(budgetOf(values, "")),
      max_parallel: wholeNumber("parallel", values.parallel, 1),
      options: unlessEmpty(options)
    })
  }
}
