// Hooks that are told when something has happened: a turn ended, a question waits for a person, the conversation is
// over. They run beside the conversation and hold nothing up. One of Stop may send the agent back to work with a message,
// a few times in a row at most.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { RuntimeClosed } from "../contract/CommandErrors.ts"
import { settled } from "../contract/Settled.ts"
import { type RunFork, scopedFork } from "../contract/Timers.ts"
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
  private readonly fork: RunFork
  private isOver = false
  private running = 0

  private constructor(options: LifecycleOptions, fork: RunFork) {
    this.options = options
    this.fork = fork
  }

  /** Tells them for as long as the scope is open; its close ends the programs that run, and waits until they are gone. */
  static readonly make = (options: LifecycleOptions): Effect.Effect<HookLifecycle, never, Scope.Scope> =>
    Effect.gen(function* () {
      const lifecycle = new HookLifecycle(options, yield* scopedFork())
      yield* Effect.addFinalizer(() => Effect.sync(() => lifecycle.end()))
      return lifecycle
    })

  private end(): void {
    this.isOver = true
    this.waiting.length = 0
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

  private add(happening: Happening): void {
    if (this.isOver) return
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
      this.running += 1
      this.busy.add(happening.conversationId)
      this.fork(this.work(happening))
    }
  }

  private work(happening: Happening): Effect.Effect<void> {
    const trouble = (error: unknown): void => {
      const reason = error instanceof Error ? error.message : String(error)
      // A server that stops takes no more questions; that is no trouble of the hook.
      if (!(error instanceof RuntimeClosed))
        this.options.onTrouble(happening.conversationId, `${happening.event}: ${reason}`)
    }
    return this.tell(happening).pipe(
      Effect.catch((error) => Effect.sync(() => trouble(error))),
      Effect.catchDefect((defect) => Effect.sync(() => trouble(defect))),
      Effect.ensuring(
        Effect.sync(() => {
          this.running -= 1
          this.busy.delete(happening.conversationId)
          this.next()
        })
      )
    )
  }

  private state(conversationId: string): Effect.Effect<ConversationState, unknown> {
    return Effect.tryPromise({ try: () => this.options.conversations.state(conversationId), catch: (error) => error })
  }

  private readonly tell = Effect.fnUntraced({ self: this }, function* (happening: Happening) {
    const { agentId, conversationId } = happening
    const state = yield* this.state(conversationId)
    const { workspace } = state.session.config
    if (workspace === undefined) return
    const event = eventOf(happening, state)
    const hooks = this.options.library
      .hooksOf(state)
      .events.filter((hook) => hook.event === event && matches(hook.matcher, happening.matching))
    if (hooks.length === 0) return
    const key = keyOf(conversationId, agentId ?? undefined)
    const more = { ...happening.more, stop_hook_active: (this.continued.get(key) ?? 0) > 0 }
    const told = eventInput(state, event, more)
    const words = yield* this.inTurn(
      event,
      { conversation_id: conversationId, workspace },
      settled((signal) => runEventHooks(this.options, hooks, { state, agentId, workspace, told, signal }))
    )
    for (const { hook, mistake, silent } of words) {
      const trouble = mistake ?? silent
      if (trouble !== undefined) this.options.onTrouble(conversationId, `hook ${hook}: ${trouble}`)
    }
    if (event === "Stop" || event === "SubagentStop") yield* this.sendBack(happening, words)
  })

  /** Like post-tool hooks one at a time; only a person who is waited for is told at once. */
  private inTurn<A>(
    event: HookEvent,
    place: { readonly conversation_id: string; readonly workspace: string },
    run: Effect.Effect<A, unknown>
  ): Effect.Effect<A, unknown> {
    if (event === "Notification") return run
    return Effect.acquireUseRelease(
      Effect.sync(() => this.options.enter(place)),
      ({ ready }) =>
        Effect.andThen(
          Effect.promise(() => ready),
          run
        ),
      ({ leave }) => Effect.sync(leave)
    )
  }

  private readonly sendBack = Effect.fnUntraced(
    { self: this },
    function* ({ agentId, conversationId }: Happening, words: ReadonlyArray<HookWord>) {
      const blocking = words.find(({ block }) => block !== undefined)
      if (blocking?.block === undefined || agentId === null) return
      const content = blocking.block
      const key = keyOf(conversationId, agentId)
      const times = (this.continued.get(key) ?? 0) + 1
      if (times > hookLimits.continuationsMax) {
        this.options.onTrouble(conversationId, `hook ${blocking.hook} sent the agent back ${times - 1} times: no more`)
        return
      }
      const state = yield* this.state(conversationId)
      if (agentOf(state, agentId)?.status !== "idle") return
      this.continued.set(key, times)
      const [oldest] = this.continued.keys()
      if (this.continued.size > hookLimits.filesRemembered && oldest !== undefined) this.continued.delete(oldest)
      const principal = `hook:${blocking.hook}`
      yield* settled(() =>
        this.options.conversations.submit(conversationId, {
          ...{ _tag: "PostMessage", agent_id: agentId, content, mode: "queue", principal }
        })
      )
    }
  )
}

/** The end of a turn of a sub-agent has an event of its own. */
const eventOf = ({ agentId, event }: Happening, { session }: ConversationState): HookEvent =>
  event === "Stop" && agentId !== session.root_agent_id ? "SubagentStop" : event

const keyOf = (conversationId: string, agentId: string | undefined): string => `${conversationId} ${agentId ?? ""}`
