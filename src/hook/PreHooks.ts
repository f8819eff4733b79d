// Hooks that are asked before something happens: before a call is decided about, and before a message becomes a turn.
// They can only be stricter than the policy. One that could not be asked at all counts as a no: a gate that does not
// answer is closed.

import type { Asking, Objection, PromptScene, PromptVerdict } from "../contract/CallGates.ts"
import type { CallState, ConversationState } from "../machine/State.ts"
import { workspaceOf } from "../machine/view/Select.ts"
import type { Content } from "../rune/kinds/shared.ts"
import { claudeNameOf, matches } from "./ClaudeNames.ts"
import type { EventHook, HookEvent, HookScene } from "./Definition.ts"
import { contextOf, type HookWord, runEventHooks } from "./EventRun.ts"
import type { HookFiles } from "./HookFiles.ts"
import { callInput, eventInput } from "./HookInput.ts"
import type { ProgramOptions } from "./Program.ts"

const textOf = (content: Content): string =>
  typeof content === "string"
    ? content
    : content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")

const withContext = (content: Content, context: string | undefined): Content => {
  if (context === undefined) return content
  const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content
  return [...parts, { type: "text", text: context }]
}

const never = new AbortController().signal

export class PreHooks {
  private readonly library: HookFiles
  private readonly options: ProgramOptions

  constructor(library: HookFiles, options: ProgramOptions) {
    this.library = library
    this.options = options
  }

  /** What PreToolUse says about a call; nothing where no hook objects. */
  readonly preToolUse = async (
    state: ConversationState,
    call: CallState,
    asking?: Asking
  ): Promise<Objection | undefined> => {
    const workspace = workspaceOf(state, call.agent_id)
    if (workspace === undefined) return undefined
    const names = [call.tool_name, claudeNameOf(call.tool_name, call.provenance)]
    const hooks = this.of(state, "PreToolUse").filter(({ matcher }) => matches(matcher, ...names))
    if (hooks.length === 0) return undefined
    await asking?.settled()
    const told = eventInput(state, "PreToolUse", callInput(call, workspace))
    const words = await runEventHooks(this.options, hooks, {
      state,
      agentId: call.agent_id,
      workspace,
      told,
      signal: never
    })
    return objectionOf(words)
  }

  /** What SessionStart and UserPromptSubmit make of a message or a goal of a person. */
  readonly beforePrompt = async (state: PromptScene, content: Content): Promise<PromptVerdict> => {
    const { workspace } = state.session.config
    if (workspace === undefined) return { _tag: "Pass", content }
    const isFirst = state.turns === 0 && state.agents.every(({ turn, queue }) => turn === null && queue.length === 0)
    const begun = isFirst ? await this.ask(state, "SessionStart", { source: "startup" }, workspace, "startup") : []
    const asked = await this.ask(state, "UserPromptSubmit", { prompt: textOf(content) }, workspace)
    const words = [...begun, ...asked]
    const refusal = asked.map((word) => reasonOf(word)).find((reason) => reason !== undefined)
    if (refusal !== undefined) return { _tag: "Blocked", reason: refusal }
    return { _tag: "Pass", content: withContext(content, contextOf(words, { withPrinted: true })) }
  }

  private async ask(
    state: HookScene,
    event: HookEvent,
    more: object,
    workspace: string,
    matching?: string
  ): Promise<ReadonlyArray<HookWord>> {
    const hooks = this.of(state, event).filter(({ matcher }) => matching === undefined || matches(matcher, matching))
    if (hooks.length === 0) return []
    const told = eventInput(state, event, more)
    return runEventHooks(this.options, hooks, { state, agentId: null, workspace, told, signal: never })
  }

  private of(state: HookScene, event: HookEvent): ReadonlyArray<EventHook> {
    return this.library.hooksOf(state).events.filter((hook) => hook.event === event)
  }
}

const reasonOf = ({ block, hook, silent, stop }: HookWord): string | undefined => {
  const reason = block ?? stop ?? silent
  return reason === undefined ? undefined : `hook ${hook}: ${reason}`
}

const objectionOf = (words: ReadonlyArray<HookWord>): Objection | undefined => {
  const denied = words.map(reasonOf).find((reason) => reason !== undefined)
  if (denied !== undefined) return { _tag: "Deny", reason: denied }
  const asking = words.find(({ ask }) => ask !== undefined)
  return asking === undefined ? undefined : { _tag: "Ask", reason: `hook ${asking.hook}: ${asking.ask}` }
}
