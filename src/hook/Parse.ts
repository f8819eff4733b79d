// From the text of a file to its hooks, or to the reason why there are none. Both forms are read: a list of hooks, and
// the settings of Claude Code, told apart by what `hooks` is. A word that is not known is an error: a hook that was
// meant to run and does not is worse than a file that has to be mended.
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { EffectClass, Ordinal } from "../rune/kinds/shared.ts"
import {
  type BatchHook,
  type EventHook,
  type HookOrigin,
  type HookReach,
  hookEvents,
  nameIn,
  noHookSet,
  type ParsedHooks,
  type ToolFilter
} from "./Definition.ts"
import { hookLimits } from "./HookLimits.ts"

const optional = Schema.optionalKey
const Timeout = Ordinal.check(Schema.isLessThanOrEqualTo(hookLimits.timeoutMsMax))
const HookName = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(hookLimits.nameCharsMax))
const Word = Schema.String.check(Schema.isPattern(/^[^\0]*$/u))
const Reach = {
  network: optional(Schema.Boolean),
  env: optional(Schema.Array(Schema.String.check(Schema.isPattern(/^[A-Za-z_][A-Za-z0-9_]*$/u))))
}

const Policy = Schema.Union([
  Schema.Struct({ type: Schema.Literal("fail_session") }),
  Schema.Struct({ type: Schema.Literal("warn_continue") }),
  Schema.Struct({
    type: Schema.Literal("retry"),
    max_attempts: Ordinal.check(Schema.isLessThanOrEqualTo(100)),
    delay_ms: optional(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)))
  })
])

const Filter = Schema.Union([
  Schema.Struct({ type: Schema.Literal("any_mutating") }),
  Schema.Struct({ type: Schema.Literal("tool_names"), tool_names: Schema.Array(Schema.String) })
])

const BatchFile = Schema.Struct({
  $schema: optional(Schema.String),
  hooks: Schema.Array(
    Schema.Struct({
      name: HookName,
      command: Schema.Array(Word).check(Schema.isMinLength(1)),
      timeout_ms: optional(Timeout),
      failure_policy: optional(Policy),
      tool_filter: optional(Filter),
      effect_class: optional(EffectClass),
      ...Reach
    })
  )
})

const EventEntry = Schema.Struct({
  matcher: optional(Schema.String),
  hooks: Schema.Array(
    Schema.Struct({
      type: Schema.Literal("command"),
      command: Word.check(Schema.isMinLength(1)),
      /** In seconds. */
      timeout: optional(
        Schema.Finite.check(Schema.isGreaterThan(0), Schema.isLessThanOrEqualTo(hookLimits.timeoutMsMax / 1000))
      ),
      ...Reach
    })
  )
})
type EventEntry = typeof EventEntry.Type

const EventLists = Schema.Record(Schema.String, Schema.Array(Schema.Unknown))

const strict = { onExcessProperty: "error" } as const
const decodeBatchFile = Schema.decodeUnknownResult(BatchFile, strict)
const decodeLists = Schema.decodeUnknownResult(EventLists)
// Entries of this form carry more than is used here: messages for a status line, conditions of other programs.
const decodeEntry = Schema.decodeUnknownResult(EventEntry)

const invalid = (reason: string): ParsedHooks => ({ _tag: "Invalid", reason })

const reasonOf = (failure: unknown): string =>
  (failure instanceof Error ? failure.message : String(failure)).replaceAll(/\s*\n\s*/gu, " ").slice(0, 300)

const noReach: HookReach = { network: false, environment: [] }

const reachOf = (
  origin: HookOrigin,
  { env, network }: { readonly network?: boolean; readonly env?: ReadonlyArray<string> }
): HookReach => (origin === "data" ? { network: network ?? false, environment: env ?? [] } : noReach)

const filterOf = (filter: typeof Filter.Type | undefined): ToolFilter =>
  filter?.type === "tool_names" ? { type: "tool_names", names: new Set(filter.tool_names) } : { type: "any_mutating" }

const batchHook = (origin: HookOrigin, hook: (typeof BatchFile.Type)["hooks"][number]): BatchHook => {
  const { failure_policy: policy = { type: "fail_session" } } = hook
  return {
    name: nameIn(origin, hook.name),
    argv: hook.command,
    timeoutMs: hook.timeout_ms ?? hookLimits.timeoutMs,
    failurePolicy:
      policy.type === "retry" ? { ...policy, delay_ms: policy.delay_ms ?? hookLimits.retryDelayMs } : policy,
    filter: filterOf(hook.tool_filter),
    effectClass: hook.effect_class ?? "effect",
    reach: reachOf(origin, hook)
  }
}

const parseBatch = (value: unknown, origin: HookOrigin): ParsedHooks => {
  const decoded = decodeBatchFile(value)
  if (Result.isFailure(decoded)) return invalid(reasonOf(decoded.failure))
  const { hooks } = decoded.success
  if (hooks.length > hookLimits.hooksPerFileMax) return invalid(`more than ${hookLimits.hooksPerFileMax} hooks`)
  const twice = hooks.find((hook, at) => hooks.findIndex(({ name }) => name === hook.name) !== at)
  if (twice !== undefined) return invalid(`two hooks are called "${twice.name}"`)
  return { _tag: "Hooks", set: { batch: hooks.map((hook) => batchHook(origin, hook)), events: [] } }
}

const matcherOf = (matcher: string | undefined): RegExp | undefined | string => {
  if (matcher === undefined || matcher === "" || matcher === "*") return undefined
  try {
    return new RegExp(`^(?:${matcher})$`, "u")
  } catch (error) {
    return reasonOf(error)
  }
}

const eventHooks = (
  entry: EventEntry,
  at: { readonly event: EventHook["event"]; readonly place: number; readonly origin: HookOrigin }
): ReadonlyArray<EventHook> | string => {
  const matcher = matcherOf(entry.matcher)
  if (typeof matcher === "string") return matcher
  return entry.hooks.map((hook, index) => ({
    name: nameIn(at.origin, `${at.event}[${at.place}.${index}]`),
    event: at.event,
    matcher,
    command: hook.command,
    timeoutMs: hook.timeout === undefined ? hookLimits.eventTimeoutMs : Math.ceil(hook.timeout * 1000),
    reach: reachOf(at.origin, hook)
  }))
}

const parseEvents = (value: unknown, origin: HookOrigin): ParsedHooks => {
  const lists = decodeLists(value)
  if (Result.isFailure(lists)) return invalid(reasonOf(lists.failure))
  const events: Array<EventHook> = []
  for (const event of hookEvents) {
    for (const [place, entry] of (lists.success[event] ?? []).entries()) {
      const decoded = decodeEntry(entry)
      if (Result.isFailure(decoded)) return invalid(`${event}[${place}]: ${reasonOf(decoded.failure)}`)
      const hooks = eventHooks(decoded.success, { event, place, origin })
      if (typeof hooks === "string") return invalid(`${event}[${place}]: ${hooks}`)
      events.push(...hooks)
    }
  }
  if (events.length > hookLimits.hooksPerFileMax) return invalid(`more than ${hookLimits.hooksPerFileMax} hooks`)
  return { _tag: "Hooks", set: { batch: [], events } }
}

export interface HookText {
  readonly text: string
  readonly origin: HookOrigin
  /** Settings of another program, which need not speak of hooks at all. */
  readonly isSettings: boolean
}

/** The hooks in a text. */
export const parseHooks = ({ isSettings, origin, text }: HookText): ParsedHooks => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return invalid(`it is not JSON: ${reasonOf(error)}`)
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return invalid("it is no JSON object")
  const { hooks } = value as { readonly hooks?: unknown }
  if (Array.isArray(hooks)) return parseBatch(value, origin)
  if (hooks === undefined && isSettings) return { _tag: "Hooks", set: noHookSet }
  return parseEvents(hooks, origin)
}
