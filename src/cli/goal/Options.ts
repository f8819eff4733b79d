// Options of `echs goal` and the request made from them. Every field of the protocol has a flag; an invalid value is
// reported by the name of its flag before anything is sent.
import { resolve } from "node:path"
import type { Fields } from "../../client/Wire.ts"
import { directoryLabel } from "../shared/Directory.ts"
import { type OptionTable, oneOf, UsageError, type Values, wholeNumber } from "../VerbSpec.ts"

export const goalOptions = {
  model: { type: "string", short: "m", value: "MODEL", help: "model, as provider/name" },
  workspace: { type: "string", short: "w", value: "DIRECTORY", help: "directory to work in (default: this directory)" },
  "unsafe-workspace": { type: "boolean", help: "allow a home or system directory as the workspace" },
  title: { type: "string", value: "TEXT", help: "title of the conversation (default: the goal)" },
  policy: { type: "string", value: "MODE", help: "read_only, auto or full_access (default: auto, which asks)" },
  in: { type: "string", value: "CONVERSATION", help: "pursue the goal in an existing conversation" },
  parallel: { type: "string", value: "COUNT", help: "number of tasks that may run at once (default: 3)" },
  worktrees: { type: "boolean", help: "give each worker its own git worktree, merged when its task is done" },
  check: {
    type: "string",
    value: "COMMAND",
    multiple: true,
    help: "command that must succeed, independent of the plan"
  },
  "hidden-check": { type: "string", value: "COMMAND", multiple: true, help: "the same, hidden from all models" },
  protect: { type: "string", value: "PATH", multiple: true, help: "path or pattern that no worker may change" },
  "check-file": { type: "string", value: "FILE", help: "JSON with evidence, hidden_evidence, protect and models" },
  "planner-model": { type: "string", value: "MODEL", help: "model of the planner (default: --model)" },
  "worker-model": { type: "string", value: "MODEL", help: "model of the workers" },
  "critic-model": { type: "string", value: "MODEL", help: "model of the critic" },
  review: { type: "boolean", help: "show the plan and wait for approval before starting" },
  tokens: { type: "string", value: "COUNT", help: "tokens of the goal; it waits for more when they are used" },
  usd: { type: "string", value: "AMOUNT", help: "US dollars of the goal" },
  "tool-calls": { type: "string", value: "COUNT", help: "tool calls of the goal" },
  time: { type: "string", value: "TIME", help: "time of the goal: 90s, 30m, 2h or 1d" },
  "stop-on-budget": { type: "boolean", help: "end the goal when its budget is used, instead of waiting for more" },
  "task-tokens": { type: "string", value: "COUNT", help: "token limit of each worker" },
  "task-usd": { type: "string", value: "AMOUNT", help: "US dollar limit of each worker" },
  "task-tool-calls": { type: "string", value: "COUNT", help: "tool call limit of each worker" },
  "task-time": { type: "string", value: "TIME", help: "time limit of each worker" },
  "max-iterations": { type: "string", value: "COUNT", help: "stop after this many reviews (default: 10)" },
  "max-replans": { type: "string", value: "COUNT", help: "stop after more than this many new plans (default: 3)" },
  "stall-tokens": { type: "string", value: "COUNT", help: "stop after this many tokens without a finished task" },
  detach: { type: "boolean", short: "d", help: "submit the goal and do not follow it" }
} as const satisfies OptionTable

type GoalValues = Values<typeof goalOptions>

const amount = (name: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const value = Number(text)
  if (!/^\d+(\.\d+)?$/.test(text) || value <= 0) throw new UsageError(`--${name} must be a number greater than 0`)
  return value
}

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

const isUnit = (unit: string): unit is keyof typeof unitMs => Object.hasOwn(unitMs, unit)

const timeMs = (name: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const [, digits = "", unit = ""] = /^([1-9]\d{0,5})([smhd])$/.exec(text) ?? []
  if (!isUnit(unit)) throw new UsageError(`--${name} must be a number, 1 or greater, followed by s, m, h or d`)
  return Number(digits) * unitMs[unit]
}

type Given<Fields> = { readonly [Name in keyof Fields]?: Exclude<Fields[Name], undefined> }

/** The fields without the undefined ones. */
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

/** Options of a new conversation; an existing one keeps its own. */
const creating = ["model", "workspace", "unsafe-workspace", "title", "policy"] as const

const placeOf = (values: GoalValues, workingDirectory: string) => {
  const mode = oneOf("policy", values.policy, ["read_only", "auto", "full_access"])
  const workspace = resolve(workingDirectory, values.workspace ?? "")
  return given({
    workspace,
    labels: directoryLabel(workspace),
    unsafe_workspace: values["unsafe-workspace"],
    policy: mode === undefined ? undefined : { mode },
    model: values.model,
    title: values.title
  })
}

type Demands = Pick<Fields<"goal.submit">, "evidence" | "hidden_evidence" | "protect" | "models">

/** A file of checks, as far as it can be told without the server; what is in them the server checks. */
export const demandsIn = (text: string, path: string): Demands => {
  const names = ["evidence", "hidden_evidence", "protect", "models"]
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new UsageError(`--check-file: ${path} is not JSON`)
  }
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value)
  const other = isObject ? Object.keys(value as object).find((name) => !names.includes(name)) : undefined
  if (!isObject || other !== undefined) {
    throw new UsageError(
      `--check-file: ${path} is an object with ${names.join(", ")}${other === undefined ? "" : `, not ${other}`}`
    )
  }
  return value as Demands
}

/** Lines of a shell as checks that end with 0. */
export const commands = (lines: ReadonlyArray<string> | undefined) =>
  (lines ?? []).map((line) => ({ type: "command", command: ["sh", "-c", line], expected_exit: 0 }) as const)

const unlessNone = <Item>(list: ReadonlyArray<Item>): ReadonlyArray<Item> | undefined =>
  list.length === 0 ? undefined : list

const demandsOf = (values: GoalValues, file: Demands): Demands =>
  given({
    evidence: unlessNone([...(file.evidence ?? []), ...commands(values.check)]),
    hidden_evidence: unlessNone([...(file.hidden_evidence ?? []), ...commands(values["hidden-check"])]),
    protect: unlessNone([...(file.protect ?? []), ...(values.protect ?? [])]),
    models: unlessEmpty({
      ...file.models,
      ...given({ planner: values["planner-model"], worker: values["worker-model"], critic: values["critic-model"] })
    })
  })

/** The fields of `goal.submit`, without the goal and the conversation id. */
export const goalFields = (
  values: GoalValues,
  workingDirectory: string,
  file: Demands = {}
): Omit<Fields<"goal.submit">, "goal"> => {
  const clash = creating.find((name) => values.in !== undefined && values[name] !== undefined)
  if (clash !== undefined)
    throw new UsageError(`--${clash} applies to a new conversation and cannot be combined with --in`)
  const options = given({
    worktrees: values.worktrees,
    max_iterations: wholeNumber("max-iterations", values["max-iterations"], 1),
    max_replans: wholeNumber("max-replans", values["max-replans"]),
    tokens_without_progress: wholeNumber("stall-tokens", values["stall-tokens"], 1),
    task_budget: unlessEmpty(budgetOf(values, "task-")),
    stop_on_budget: values["stop-on-budget"]
  })
  return {
    auto_start: values.review !== true,
    ...(values.in === undefined ? placeOf(values, workingDirectory) : {}),
    ...demandsOf(values, file),
    ...given({
      budget: unlessEmpty(budgetOf(values, "")),
      max_parallel: wholeNumber("parallel", values.parallel, 1),
      options: unlessEmpty(options)
    })
  }
}
