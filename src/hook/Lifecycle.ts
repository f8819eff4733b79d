// Hooks that are told when something has happened: a turn ended, a question waits for a person, the conversation is
// over. They run beside the conversation and hold nothing up. One of Stop may send the agent back to work with a message,
// a few times in a row at most.

import { RuntimeClosed } from "../contract/CommandErrors.ts"
import type { ConversationState } from "../machine/State.ts"
import { agentOf } from "../machine/view/Select.ts"
import type { AgentId } from "../rune/Ids.ts"
import { type AnyRune, isKnown, type Rune } from "../rune/Rune.ts"
import { matches } from "./ClaudeNames.ts"
import type { HookEvent } from "./Definition.ts"
import { type HookWord, runEventHooks } from "./EventRun.ts"
import type { HookFiles } from "./HookFiles.ts"
import { eventInput } from "./HookInput.ts"
import { hookLimits } from "./HookLimits.ts"
import type { HookPort } from "./HookPort.ts"
import type { ProgramOptions } from "./Program.ts"

/** The conversations, as far as hooks speak to them. */
export interface HookConversations {
  readonly state: (conversationId: string) => Promise<ConversationState>
  readonly submit: (
    conversationId: string,
    command: {
      readonly _tag: "PostMessage"
      readonly agent_id: AgentId
      readonly content: string
      readonly mode: "queue"
      readonly principal: string
    }
  ) => Promise<unknown>
}

export interface LifecycleOptions extends ProgramOptions {
  readonly library: HookFiles
  readonly conversations: HookConversations
  readonly enter: NonNullable<HookPort["enter"]>
  /** Something about a hook that only the server's own log can tell. */
  readonly onTrouble: (conversationId: string, message: string) => void
}

interface Happening {
  readonly event: HookEvent
  readonly conversationId: string
  readonly agentId: AgentId | null
  readonly matching: string
  readonly more: Readonly<Record<string, unknown>>
}

/** Whether it was the turn of a sub-agent is seen when its hooks are looked for. */
const ofTurn = (rune: Rune & { readonly kind: "turn.completed" }): Happening => ({
  event: "Stop",
  conversationId: rune.conversation_id,
  agentId: rune.agent_id ?? null,
  matching: "",
  more: { last_assistant_message: rune.payload.final_output }
})

const ofQuestion = (rune: Rune & { readonly kind: "tool.approval_requested" }): Happening => ({
  event: "Notification",
  conversationId: rune.conversation_id,
  agentId: rune.agent_id ?? null,
  matching: "permission_prompt",
  more: {
    notification_type: "permission_prompt",
    title: rune.payload.shown_as.title,
    message: rune.payload.policy_reason,
    tool_use_id: rune.payload.call_id
  }
})

const ofClosing = (rune: Rune & { readonly kind: "session.closing" }): Happening => ({
  event: "SessionEnd",
  conversationId: rune.conversation_id,
  agentId: null,
  matching: rune.payload.reason,
  more: { reason: rune.payload.reason }
})

const isOurs = (principal: string | undefined): boolean => principal?.startsWith("hook:") ?? false

export class HookLifecycle {
  private readonly options: LifecycleOptions
  private readonly waiting: Array<Happening> = []
  private readonly busy = new Set<string>()
  /** How often in a row each agent was sent back to work. */
  private readonly continued = new Map<string, number>()
  private readonly stopping = new AbortController()
  private running = 0
  private idle: (() => void) | undefined

  constructor(options: LifecycleOptions) {
    this.options = options
  }

  /** Runes became durable. Cheap where no hook could care. */
  notice(runes: ReadonlyArray<AnyRune>): void {
    for (const rune of runes) {
      if (!isKnown(rune)) continue
      if (rune.kind === "turn.completed") this.add(ofTurn(rune))
      else if (rune.kind === "tool.approval_requested") this.add(ofQuestion(rune))
      else if (rune.kind === "session.closing") this.add(ofClosing(rune))
      else if (rune.kind === "turn.started" && !isOurs(rune.payload.principal))
        this.continued.delete(keyOf(rune.conversation_id, rune.agent_id))
    }
  }

  /** Ends what runs; resolves when nothing does. */
  async close(): Promise<void> {
    this.waiting.length = 0
    this.stopping.abort()
    if (this.running === 0) return
    await new Promise<void>((resolve) => {
      this.idle = resolve
    })
  }

  private add(happening: Happening): void {
    if (this.stopping.signal.aborted) return
    if (this.waiting.length >= hookLimits.eventsWaitingMax) {
      this.options.onTrouble(happening.conversationId, `too many events wait: ${happening.event} is not told to hooks`)
      return
    }
    this.waiting.push(happening)
    this.next()
  }

  private next(): void {
    while (this.running < hookLimits.eventsAtOnce) {
      const at = this.waiting.findIndex(({ conversationId }) => !this.busy.has(conversationId))
      const [happening] = at < 0 ? [] : this.waiting.splice(at, 1)
      if (happening === undefined) return
      void this.work(happening)
    }
  }

  private async work(happening: Happening): Promise<void> {
    this.running += 1
    this.busy.add(happening.conversationId)
    try {
      await this.tell(happening)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      // A server that stops takes no more questions; that is no trouble of the hook.
      const isStopping = error instanceof RuntimeClosed
      if (!isStopping) this.options.onTrouble(happening.conversationId, `${happening.event}: ${reason}`)
    } finally {
      this.running -= 1
      this.busy.delete(happening.conversationId)
      this.next()
      if (this.running === 0) this.idle?.()
    }
  }

  private async tell(happening: Happening): Promise<void> {
    const { conversationId } = happening
    const state = await this.options.conversations.state(conversationId)
    const { root_agent_id: root } = state.session
    const { workspace } = state.session.config
    if (workspace === undefined) return
    const isChild = happening.event === "Stop" && happening.agentId !== root
    const event: HookEvent = isChild ? "SubagentStop" : happening.event
    const hooks = this.options.library
      .hooksOf(state)
      .events.filter((hook) => hook.event === event && matches(hook.matcher, happening.matching))
    if (hooks.length === 0) return
    const key = keyOf(conversationId, happening.agentId ?? undefined)
    const more = { ...happening.more, stop_hook_active: (this.continued.get(key) ?? 0) > 0 }
    const told = eventInput(state, event, more)
    const { agentId } = happening
    const { signal } = this.stopping
    const words = await this.inTurn(event, { conversation_id: conversationId, workspace }, () =>
      runEventHooks(this.options, hooks, { state, agentId, workspace, told, signal })
    )
    for (const { hook, mistake, silent } of words) {
      const trouble = mistake ?? silent
      if (trouble !== undefined) this.options.onTrouble(conversationId, `hook ${hook}: ${trouble}`)
    }
    if (event === "Stop" || event === "SubagentStop") await this.sendBack(happening, words)
  }

  /** Like post-tool hooks one at a time; only a person who is waited for is told at once. */
  private async inTurn<A>(
    event: HookEvent,
    place: { readonly conversation_id: string; readonly workspace: string },
    run: () => Promise<A>
  ): Promise<A> {
    if (event === "Notification") return run()
    const ticket = this.options.enter(place)
    try {
      await ticket.ready
      return await run()
    } finally {
      ticket.leave()
    }
  }

  private async sendBack({ agentId, conversationId }: Happening, words: ReadonlyArray<HookWord>): Promise<void> {
    const blocking = words.find(({ block }) => block !== undefined)
    if (blocking?.block === undefined || agentId === null) return
    const key = keyOf(conversationId, agentId)
    const times = (this.continued.get(key) ?? 0) + 1
    if (times > hookLimits.continuationsMax) {
      this.options.onTrouble(conversationId, `hook ${blocking.hook} sent the agent back ${times - 1} times: no more`)
      return
    }
    const state = await this.options.conversations.state(conversationId)
    if (agentOf(state, agentId)?.status !== "idle") return
    this.continued.set(key, times)
    const [oldest] = this.continued.keys()
    if (this.continued.size > hookLimits.filesRemembered && oldest !== undefined) this.continued.delete(oldest)
    await this.options.conversations.submit(conversationId, {
      _tag: "PostMessage",
      agent_id: agentId,
      content: blocking.block,
      mode: "queue",
      principal: `hook:${blocking.hook}`
    })
  }
}

const keyOf = (conversationId: string, agentId: string | undefined): string => `${conversationId} ${agentId ?? ""}`
