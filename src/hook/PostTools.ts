// The hooks that a finished batch has to go through: those of the list whose filter lets the batch in, then those of
// PostToolUse that match one of its calls. A hook of a batch runs once for the batch; a hook of PostToolUse runs its
// command once for every call it matches, one after the other, as one run on record.
import * as Effect from "effect/Effect"
import { settled } from "../contract/Settled.ts"
import type { HookChoice } from "../machine/Command.ts"
import { errorInfo } from "../machine/ErrorTable.ts"
import type { CallRecord, CallState, ConversationState, HookState } from "../machine/State.ts"
import { agentOf, workspaceOf } from "../machine/view/Select.ts"
import type { AgentId } from "../rune/Ids.ts"
import { claudeNameOf, matches } from "./ClaudeNames.ts"
import type { BatchHook, EventHook, ToolFilter } from "./Definition.ts"
import { contextOf, type HookWord, runEventHook } from "./EventRun.ts"
import type { HookFiles } from "./HookFiles.ts"
import { batchInput, callInput, eventInput, resultInput } from "./HookInput.ts"
import { hookLimits } from "./HookLimits.ts"
import type { HookOutcome, HookPort } from "./HookPort.ts"
import { type ProgramEnded, type ProgramOptions, placeEnvironment, runProgram } from "./Program.ts"

const hasRun = ({ attempt }: CallState): boolean => attempt > 0

const passes = (filter: ToolFilter, batch: ReadonlyArray<CallState>): boolean =>
  filter.type === "any_mutating"
    ? batch.some((call) => call.mutating && hasRun(call))
    : batch.some((call) => filter.names.has(call.tool_name) && hasRun(call))

const matched = ({ matcher }: EventHook, batch: ReadonlyArray<CallState>): ReadonlyArray<CallState> =>
  batch.filter(
    (call) => hasRun(call) && matches(matcher, call.tool_name, claudeNameOf(call.tool_name, call.provenance))
  )

const choiceOfBatch = (hook: BatchHook): HookChoice => ({
  hook_name: hook.name,
  failure_policy: hook.failurePolicy,
  timeout_ms: hook.timeoutMs,
  effect_class: hook.effectClass
})

const choiceOfEvent = (hook: EventHook, calls: number): HookChoice => ({
  hook_name: hook.name,
  failure_policy: { type: "warn_continue" },
  timeout_ms: Math.min(hook.timeoutMs * calls, hookLimits.timeoutMsMax),
  effect_class: "effect"
})

const failed = (message: string, more: Partial<HookOutcome> = {}): HookOutcome => ({
  status: "failed",
  error: errorInfo("hook_execution_failed", message),
  ...more
})

const outcomeOf = (hookName: string, ended: ProgramEnded): HookOutcome => {
  const { exit_code: code, output, signal } = ended
  if (ended.aborted) return { status: "canceled", output }
  if (code === 0) return { status: "succeeded", exit_code: 0, output }
  if (code === null) return failed(`hook ${hookName} was ended by ${signal}`, { output })
  return failed(`hook ${hookName} ended with exit code ${code}`, { output, exit_code: code })
}

/** What is wrong with one command of PostToolUse, for the record. */
const faultOf = ({ block, mistake, silent }: HookWord): string | undefined => block ?? silent ?? mistake

const outcomeOfWords = (hookName: string, words: ReadonlyArray<HookWord>): HookOutcome => {
  const last = words.at(-1)
  const blocked = words.flatMap(({ block }) => block ?? [])
  const context = contextOf(words, { withPrinted: false })
  const parts = [...blocked, ...(context === undefined ? [] : [context])]
  const stop = words.find((word) => word.stop !== undefined)?.stop
  const more = {
    output: words.map(({ output }) => output).join(""),
    ...(last?.exit_code === undefined ? {} : { exit_code: last.exit_code }),
    ...(parts.length === 0 ? {} : { feedback: `${hookName}: ${parts.join("\n")}` }),
    ...(stop === undefined ? {} : { stop })
  }
  const fault = words.map(faultOf).find((one) => one !== undefined)
  return fault === undefined ? { status: "succeeded", ...more } : failed(`hook ${hookName}: ${fault}`, more)
}

type RunContext = Parameters<HookPort["run"]>[2] & { readonly signal: AbortSignal }

export class PostTools implements HookPort {
  private readonly library: HookFiles
  private readonly options: ProgramOptions
  private readonly batches = new Map<string, ReadonlyArray<CallState>>()
  readonly enter: NonNullable<HookPort["enter"]>

  constructor(library: HookFiles, options: ProgramOptions, enter: NonNullable<HookPort["enter"]>) {
    this.library = library
    this.options = options
    this.enter = enter
  }

  readonly complaints: NonNullable<HookPort["complaints"]> = (state) => this.library.complaints(state)

  readonly choose: HookPort["choose"] = (state, agentId, batch) => {
    // Hooks run in the workspace; where there is none, there is nothing for them to look after.
    if (workspaceOf(state, agentId) === undefined) return []
    const { batch: hooks, events } = this.library.hooksOf(state)
    if (hooks.length + events.length > 0) this.remember(state, agentId, batch)
    const ofEvents = events
      .filter(({ event }) => event === "PostToolUse")
      .map((hook) => ({ hook, calls: matched(hook, batch).length }))
    return [
      ...hooks.filter(({ filter }) => passes(filter, batch)).map(choiceOfBatch),
      ...ofEvents.filter(({ calls }) => calls > 0).map(({ calls, hook }) => choiceOfEvent(hook, calls))
    ]
  }

  readonly run: HookPort["run"] = (state, hook, context) =>
    Effect.orDie(settled((signal) => this.runNow(state, hook, { ...context, signal })))

  private async runNow(state: ConversationState, hook: HookState, context: RunContext): Promise<HookOutcome> {
    const { workspace } = context
    if (workspace === undefined) return failed(`hook ${hook.hook_name} has no workspace to run in`)
    const { batch, events } = this.library.hooksOf(state)
    const ofBatch = batch.find(({ name }) => name === hook.hook_name)
    if (ofBatch !== undefined) return this.runBatchHook(state, hook, ofBatch, { ...context, workspace })
    const ofEvent = events.find(({ name }) => name === hook.hook_name)
    if (ofEvent !== undefined) return this.runCallHooks(state, hook, ofEvent, { ...context, workspace })
    return failed(`hook ${hook.hook_name} is no longer in any file that may be used`)
  }

  private async runBatchHook(
    state: ConversationState,
    hook: HookState,
    definition: BatchHook,
    context: RunContext & { readonly workspace: string }
  ): Promise<HookOutcome> {
    const batch = this.batchOf(state, context.agent_id)
    const ended = await runProgram(this.options, {
      name: hook.hook_name,
      argv: definition.argv,
      reach: definition.reach,
      workspace: context.workspace,
      told: batchInput(state, hook, batch, context.agent_id),
      environment: {
        ...placeEnvironment(state, context.agent_id),
        ECHS_HOOK_RUN_ID: hook.hook_run_id,
        ECHS_HOOK_ATTEMPT: String(hook.attempt),
        ECHS_TOOL_NAMES: batch.map(({ tool_name }) => tool_name).join(" ")
      },
      signal: context.signal
    })
    return outcomeOf(hook.hook_name, ended)
  }

  /** The state lets go of a batch when its hooks begin; they still have to know it. */
  private remember(state: ConversationState, agentId: AgentId, batch: ReadonlyArray<CallState>): void {
    const key = `${state.conversation_id} ${agentId}`
    this.batches.delete(key)
    this.batches.set(key, batch)
    const [oldest] = this.batches.keys()
    if (this.batches.size > hookLimits.batchesRemembered && oldest !== undefined) this.batches.delete(oldest)
  }

  /** The calls that the agent's turn has just finished; after a restart, as far as the transcript has them. */
  private batchOf(state: ConversationState, agentId: AgentId): ReadonlyArray<CallState> {
    const agent = agentOf(state, agentId)
    const ids = agent?.turn?.call_ids ?? []
    const known = this.batches.get(`${state.conversation_id} ${agentId}`) ?? []
    if (known.length === ids.length && known.every(({ call_id }) => ids.includes(call_id))) return known
    const records = agent?.transcript.flatMap((item) => (item.type === "assistant" ? item.calls : [])) ?? []
    return records.filter((one) => ids.includes(one.call_id)).map((record) => callOfRecord(record, agentId))
  }

  private async runCallHooks(
    state: ConversationState,
    hook: HookState,
    definition: EventHook,
    context: RunContext & { readonly workspace: string; readonly agent_id: AgentId }
  ): Promise<HookOutcome> {
    const { agent_id: agentId, signal, workspace } = context
    const words: Array<HookWord> = []
    for (const call of matched(definition, this.batchOf(state, agentId))) {
      const more = { ...callInput(call, workspace), ...resultInput(call) }
      const told = eventInput(state, "PostToolUse", more)
      const word = await runEventHook(this.options, definition, { state, agentId, workspace, told, signal })
      words.push(word)
      if (signal.aborted) return { status: "canceled", output: word.output }
      if (word.stop !== undefined) break
    }
    return outcomeOfWords(hook.hook_name, words)
  }
}

/** A call as far as the transcript remembers it. What it does not remember is taken for the worst. */
const callOfRecord = (record: CallRecord, agentId: AgentId): CallState => ({
  call_id: record.call_id,
  run_id: "",
  agent_id: agentId,
  turn_id: null,
  event_id: 0,
  tool_name: record.tool_name,
  arguments: record.arguments,
  arguments_hash: "",
  effect_class: "effect",
  mutating: true,
  timeout_ms: null,
  provenance: record.tool_name.includes("__") ? "mcp" : null,
  status: "completed",
  attempt: 1,
  started_ms: null,
  approval: null,
  progress_tail: "",
  result: record.result ?? null,
  duration_ms: 0
})
