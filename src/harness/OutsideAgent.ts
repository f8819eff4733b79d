// One outside agent while its program runs: hears its hooks, its telemetry and its terminal one after another, asks people
// for it, types for them, notices when it is gone. Owned by a scope; closing it leaves the program alone.

import { join } from "node:path"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberHandle from "effect/FiberHandle"
import * as FiberSet from "effect/FiberSet"
import * as Schedule from "effect/Schedule"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { outsideProvenance } from "../contract/OutsideAgents.ts"
import type { AgentState } from "../machine/State.ts"
import { isStale, needsHuman, recoveryLimits } from "../machine/table/Attention.ts"
import { type CallId, isCallId } from "../rune/Ids.ts"
import type { AnyRune } from "../rune/Rune.ts"
import { adapterOf } from "./Adapters.ts"
import type { AgentPlace } from "./AgentFiles.ts"
import { spoolName } from "./claude/ClaudeLaunch.ts"
import { type PermissionDecision, permissionAnswer } from "./claude/PermissionAnswer.ts"
import { readTranscriptEnd } from "./claude/Transcript.ts"
import type { HarnessHost } from "./HarnessHost.ts"
import { harnessLimits } from "./HarnessLimits.ts"
import type { Exit, Frame } from "./holder/Frames.ts"
import { readState } from "./holder/HolderFiles.ts"
import { connectHolder, type HolderLink } from "./holder/HolderLink.ts"
import type { Found, HarnessSession, Heard, ProgramStatus, ProtocolSession, Question, TelemetryRecord } from "./Port.ts"
import { connectWebSocket, type MessageLink } from "./protocol/MessageLink.ts"
import { QueuedInputs } from "./QueuedInputs.ts"
import { agentChannel, Recorder } from "./Recorder.ts"
import { Spool } from "./Spool.ts"

export interface OutsideAgentOptions {
  readonly place: AgentPlace
  readonly host: HarnessHost
  /** What another life of the server had seen of it. */
  readonly found: Found
  readonly onGone: () => void
}

const signalNames: Readonly<Record<number, string>> = { 1: "SIGHUP", 2: "SIGINT", 9: "SIGKILL", 15: "SIGTERM" }

const goneReason = (exit: Exit | undefined): string => {
  if (exit === undefined) return "the process that held its terminal is gone"
  return exit.signal === null ? `exited with ${exit.exitCode}` : `ended by ${signalNames[exit.signal] ?? exit.signal}`
}

const typedApartMs = 80

export class OutsideAgent {
  readonly place: AgentPlace
  private readonly host: HarnessHost
  private readonly session: HarnessSession
  /** The same session, where the program is spoken to in messages. */
  private readonly protocol: ProtocolSession | undefined
  private messages: MessageLink | undefined
  private readonly recorder: Recorder
  private readonly spool: Spool
  private readonly onGone: () => void
  private readonly hearing = Semaphore.makeUnsafe(1)
  private readonly draining = Semaphore.makeUnsafe(1)
  private readonly typing = Semaphore.makeUnsafe(1)
  private readonly undecided = new Map<string, Deferred.Deferred<PermissionDecision>>()
  private readonly inputs: QueuedInputs
  private link: HolderLink | undefined
  private exit: Exit | undefined
  private transcript: string | undefined
  private isClosing = false
  private fork: (effect: Effect.Effect<unknown>) => void = () => undefined
  private forkStatus: (effect: Effect.Effect<unknown>) => void = () => undefined

  constructor({ found, host, onGone, place }: OutsideAgentOptions) {
    this.place = place
    this.host = host
    this.onGone = onGone
    const adapter = adapterOf(place.harness)
    this.protocol = this.address === undefined ? undefined : adapter.connect?.(found)
    this.session = this.protocol ?? adapter.open(found)
    this.recorder = new Recorder(place, host)
    this.inputs = new QueuedInputs(place.directory)
    this.spool = new Spool(join(place.directory, spoolName))
  }

  /** Connects to the holder and follows the program until it is gone or the scope closes. Fails where none is there. */
  readonly follow = Effect.fn("OutsideAgent.follow")({ self: this }, function* () {
    const fibers = yield* FiberSet.make()
    const status = yield* FiberHandle.make()
    const runFork = yield* FiberSet.runtime(fibers)()
    const runStatus = yield* FiberHandle.runtime(status)()
    this.fork = (effect) => void runFork(effect)
    this.forkStatus = (effect) => void runStatus(effect)
    yield* Effect.addFinalizer(() => Effect.sync(() => this.close()))
    // Nothing is heard before it is on record that the agent is there.
    const attached = yield* this.hearing.withPermits(1)(Effect.flatMap(this.connect(), ({ pid }) => this.attached(pid)))
    const stopWatching = this.spool.watch(() => this.fork(this.drain()))
    yield* Effect.addFinalizer(() => Effect.sync(stopWatching))
    const health = Effect.repeat(this.check(), Schedule.spaced(recoveryLimits.healthCheckIntervalMs))
    yield* Effect.forkScoped(health)
    const { address, protocol } = this
    if (protocol !== undefined && address !== undefined) yield* Effect.forkScoped(this.converse(protocol, address))
    return attached
  })

  /** Where the process beside the program is reached. */
  private get address(): string | undefined {
    return readState(this.place.directory)?.companion?.address
  }

  /** Speaks with the program for as long as it runs, over one connection after the other. */
  private converse(protocol: ProtocolSession, address: string): Effect.Effect<void> {
    const once = Effect.gen({ self: this }, function* () {
      const link = yield* connectWebSocket(address, this.place.token)
      this.messages = link
      this.say(protocol.greeting())
      yield* Stream.runForEach(link.messages, (value) => this.spoken(protocol, value))
    })
    const lost = Effect.sync(() => {
      this.messages = undefined
    })
    const untilGone = Effect.repeat(Effect.ignore(Effect.ensuring(Effect.scoped(once), lost)), {
      schedule: Schedule.spaced(harnessLimits.reconnectMs),
      while: () => this.link !== undefined
    })
    return Effect.asVoid(untilGone)
  }

  private say(messages: ReadonlyArray<unknown>): void {
    for (const message of messages) this.messages?.send(message)
  }

  private spoken(protocol: ProtocolSession, value: unknown): Effect.Effect<void> {
    return Effect.map(
      this.hear(() => protocol.message(value)),
      ({ question, replies = [] }) => {
        this.say(replies)
        if (question === undefined || !isCallId(question.callId)) return
        const { callId } = question
        this.fork(Effect.map(this.decided(question), (decision) => this.say(protocol.answer(callId, decision))))
      }
    )
  }

  private connect() {
    return Effect.tryPromise(async () => {
      const frame = (frame: Frame): void => this.frame(frame)
      const closed = (): void => {
        if (!this.isClosing && this.link !== undefined) this.fork(this.gone())
      }
      this.link = await connectHolder(this.place.directory, { role: "observer" }, { frame, closed })
      return this.link.welcome
    })
  }

  private close(): void {
    this.isClosing = true
    this.link?.close()
    for (const deferred of this.undecided.values()) Deferred.doneUnsafe(deferred, Effect.succeed({ _tag: "Unsaid" }))
  }

  private frame(frame: Frame): void {
    if (frame.type === "exit") this.exit = frame.value
    if (frame.type !== "status") return
    const { value } = frame
    // A later word of the terminal replaces one that still waits: what came before a dialog is no answer to it.
    const isCertain = value.state === "blocked" || value.source === "silence"
    const heard = this.status(value)
    this.forkStatus(isCertain ? heard : Effect.delay(heard, harnessLimits.terminalDebounceMs))
  }

  private status(status: ProgramStatus): Effect.Effect<void> {
    return Effect.andThen(this.drain(), Effect.asVoid(this.hear(() => this.session.status(status))))
  }

  /** One signal after the other; done when what it says is durable. */
  private hear(say: () => Heard): Effect.Effect<Heard> {
    const heard = Effect.suspend(() => {
      const heard = say()
      if (heard.session?.transcript !== undefined) this.transcript = heard.session.transcript
      return this.record(heard)
    })
    return Effect.tap(this.hearing.withPermits(1)(heard), () =>
      Effect.sync(() => {
        if (this.inputs.size > 0) this.fork(this.flush())
      })
    )
  }

  private record(heard: Heard): Effect.Effect<Heard> {
    const settled = Effect.forEach(heard.settled ?? [], (one) => this.recorder.settle(one), { discard: true })
    const written = this.recorder.events(heard.events)
    return Effect.map(
      Effect.tap(written, () => settled),
      (one) => (one?._tag === "Failed" ? { ...heard, isUnwritten: true } : heard)
    )
  }

  hook(name: string, body: unknown): Effect.Effect<Heard> {
    return this.hear(() => this.session.hook(name, body))
  }

  telemetry(records: ReadonlyArray<TelemetryRecord>): Effect.Effect<Heard> {
    return this.hear(() => this.session.telemetry(records))
  }

  /** Hears all that the shim has written so far. */
  drain(): Effect.Effect<void> {
    const pass = Effect.suspend(() =>
      Effect.forEach(
        this.spool.waiting(),
        (hook) =>
          Effect.map(this.hook(hook.name, hook.body), ({ isUnwritten }) => {
            if (isUnwritten !== true) this.spool.done(hook)
          }),
        { discard: true }
      )
    )
    return this.draining.withPermits(1)(pass)
  }

  /** Asks a person about a call; the answer is in the format of the program. */
  ask(body: unknown): Effect.Effect<unknown> {
    return Effect.gen({ self: this }, function* () {
      yield* this.drain()
      const { question } = yield* this.hook("PermissionRequest", body)
      if (question === undefined || !isCallId(question.callId)) return permissionAnswer({ _tag: "Unsaid" })
      const decision = yield* this.decided(question)
      return permissionAnswer(decision)
    })
  }

  private decided(question: Question): Effect.Effect<PermissionDecision> {
    const { callId } = question
    const deferred = Deferred.makeUnsafe<PermissionDecision>()
    this.undecided.set(callId, deferred)
    const answered = this.waitMs === undefined ? Deferred.await(deferred) : withinWait(deferred)
    const told = Effect.flatMap(this.open(question), (isOpen) =>
      isOpen ? answered : Effect.succeed<PermissionDecision>({ _tag: "Unsaid" })
    )
    return told.pipe(
      Effect.tap((decision) => (decision._tag === "Allow" ? this.recorder.started(callId) : Effect.void)),
      Effect.tap((decision) =>
        decision._tag === "Unsaid" ? Effect.void : this.hear(() => this.session.decided(callId))
      ),
      Effect.ensuring(this.forgotten(callId))
    )
  }

  /** A hook is answered in time; a question that was asked in a message waits for as long as the program does. */
  private get waitMs(): number | undefined {
    return this.protocol === undefined ? harnessLimits.permissionWaitMs : undefined
  }

  /** An open question that nobody waits for any more is closed: the dialog of the program is what is left. */
  private forgotten(callId: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.undecided.delete(callId)
      if (this.isClosing) return Effect.void
      return Effect.flatMap(this.state(), (state) => {
        const call = state?.calls.find((one) => one.call_id === callId)
        return call?.status === "awaiting_approval" ? Effect.asVoid(this.recorder.abandoned(callId)) : Effect.void
      })
    })
  }

  private open({ callId, input, subAgent, title, toolName }: Question): Effect.Effect<boolean> {
    return Effect.gen({ self: this }, function* () {
      const call_id = callId as CallId
      // Asked before, by another life of the server, and asked again: it is the same question.
      const known = (yield* this.state())?.calls.find((one) => one.call_id === call_id)
      if (known?.status === "awaiting_approval") return true
      const tool = { effect_class: "effect", mutating: true, provenance: outsideProvenance } as const
      const opened = yield* this.recorder.submit({
        _tag: "OpenCall",
        agent_id: this.recorder.agentId,
        call_id,
        tool_name: toolName,
        arguments: this.recorder.masked(input),
        tool
      })
      if (opened._tag !== "Written") return false
      const asks = subAgent === undefined ? this.place.harness : `a sub-agent of ${this.place.harness}`
      const asked = yield* this.recorder.submit({
        _tag: "RequireApproval",
        call_id,
        policy_reason: `${asks} asks for permission`,
        shown_as: { title: this.recorder.masked(title), workspace: this.place.workspace, origin: this.place.harness },
        ...(this.waitMs === undefined ? {} : { expires_ms: this.host.nowMs() + this.waitMs }),
        choices: ["once"]
      })
      return asked._tag === "Written"
    })
  }

  /** What became durable in its conversation. */
  notice(runes: ReadonlyArray<AnyRune>): void {
    for (const rune of runes) {
      if (rune.kind === "session.closing") this.hangUp()
      if (rune.kind === "session.suspended") this.fork(this.interrupt())
      const decision = decisionOf(rune)
      const deferred = decision === undefined ? undefined : this.undecided.get(decision.callId)
      if (decision !== undefined && deferred !== undefined)
        Deferred.doneUnsafe(deferred, Effect.succeed(decision.decision))
    }
  }

  /** Types a text as soon as the program can take it: not into a dialog, and not before it is up. */
  send(text: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.inputs.add(text)
      return this.flush()
    })
  }

  get inputsQueued(): number {
    return this.inputs.size
  }

  private flush(): Effect.Effect<void> {
    const typed = Effect.gen({ self: this }, function* () {
      while (this.inputs.size > 0) {
        const agent = yield* this.agent()
        const monitor = agent?.harness?.monitor
        if (monitor === undefined || monitor === "waiting_for_permission" || monitor === "initialized") return
        const text = this.inputs.first
        if (text === undefined) return
        if (this.protocol !== undefined) {
          const messages = this.messages === undefined ? undefined : this.protocol.input(text)
          if (messages === undefined) return
          this.say(messages)
          this.inputs.takeFirst()
          continue
        }
        for (const piece of adapterOf(this.place.harness).typed(text)) {
          this.type(piece)
          yield* Effect.sleep(typedApartMs)
        }
        this.inputs.takeFirst()
      }
    })
    return this.typing.withPermits(1)(typed)
  }

  private type(text: string): void {
    this.link?.send({ type: "input", bytes: Buffer.from(text, "utf8") })
  }

  interrupt(): Effect.Effect<void> {
    return Effect.sync(() => {
      if (this.protocol === undefined || this.messages === undefined)
        this.type(adapterOf(this.place.harness).interruptKey)
      else this.say(this.protocol.interrupt())
    })
  }

  hangUp(): void {
    this.link?.send({ type: "signal", value: { signal: "SIGHUP" } })
  }

  get isAttached(): boolean {
    return this.link !== undefined
  }

  private state() {
    return Effect.catch(
      Effect.tryPromise(() => this.host.state(this.place.conversationId)),
      () => Effect.succeed(undefined)
    )
  }

  private agent(): Effect.Effect<AgentState | undefined> {
    return Effect.map(this.state(), (state) => state?.agents.find((one) => one.agent_id === this.place.agentId))
  }

  /** Compares what is shown with what the transcript says: hooks get lost, and some things fire none. */
  private check(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      yield* this.drain()
      const harness = (yield* this.agent())?.harness
      if (harness == null || this.transcript === undefined) return
      if (!this.session.isBusy() && !needsHuman(harness.attention)) return
      const end = readTranscriptEnd(this.transcript)
      if (end === undefined || !isStale({ modifiedMs: end.lastMs, lastEventMs: harness.last_event_ms })) return
      if (end.isInterrupted) yield* this.hear(() => this.session.interrupted())
      if (!needsHuman(harness.attention)) return
      const reason = end.isInterrupted
        ? "the transcript says it was interrupted"
        : "the transcript went on without a hook"
      yield* this.recorder.submit({ _tag: "RecoverHarness", agent_id: this.recorder.agentId, reason })
    })
  }

  private gone(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      this.link = undefined
      yield* this.drain()
      const exit = this.exit ?? readState(this.place.directory)?.exit
      yield* this.detached(exit)
      this.onGone()
    })
  }

  /** Puts the end of the program on record, with the end of the conversation that was about it. */
  detached(exit: Exit | undefined): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const reason = goneReason(exit)
      const signal = exit?.signal == null ? {} : { signal: signalNames[exit.signal] ?? `signal ${exit.signal}` }
      const code = exit === undefined || exit.signal !== null ? {} : { exit_code: exit.exitCode }
      const payload = { reason, ...code, ...signal }
      yield* this.recorder.submit({ _tag: "DetachHarness", agent_id: this.recorder.agentId, payload })
      yield* this.recorder.submit({ _tag: "Close", reason: `${this.place.harness} ${reason}` })
    })
  }

  /** The agent is there, for the first time or again; nothing where its conversation takes it no more. */
  attached(pid: number): Effect.Effect<{ readonly event_id: number } | undefined> {
    const { harness, workspace } = this.place
    return Effect.gen({ self: this }, function* () {
      const state = yield* this.state()
      const known = state?.agents.find((one) => one.agent_id === this.place.agentId)?.harness
      if (state !== undefined && known?.attached === true) return { event_id: state.head }
      const payload = { harness, pid, workspace }
      const written = yield* this.recorder.submit({ _tag: "AttachHarness", agent_id: this.recorder.agentId, payload })
      return written._tag === "Written" ? written : undefined
    })
  }

  recordInput(text: string, principal: string) {
    const shown = this.recorder.masked(text)
    return this.recorder.submit({
      _tag: "RecordHarnessInput",
      agent_id: this.recorder.agentId,
      text: shown,
      principal
    })
  }

  /**
   * Questions of another life of the server. Whoever waited for the answer over HTTP is not connected any more; a program
   * that is spoken to asks again, and what it does not ask again is over.
   */
  closeOldQuestions(): Effect.Effect<void> {
    const closed = Effect.flatMap(this.state(), (state) =>
      Effect.forEach(
        (state?.calls ?? []).filter(
          (call) =>
            call.status === "awaiting_approval" &&
            call.provenance === outsideProvenance &&
            !this.undecided.has(call.call_id)
        ),
        (call) => this.recorder.abandoned(call.call_id),
        { discard: true }
      )
    )
    if (this.protocol === undefined) return closed
    return Effect.sync(() => this.fork(Effect.delay(closed, harnessLimits.askedAgainMs)))
  }
}

const withinWait = (deferred: Deferred.Deferred<PermissionDecision>): Effect.Effect<PermissionDecision> =>
  Effect.timeoutOrElse(Deferred.await(deferred), {
    duration: harnessLimits.permissionWaitMs,
    orElse: () => Effect.succeed<PermissionDecision>({ _tag: "Unsaid" })
  })

interface Decided {
  readonly callId: string
  readonly decision: PermissionDecision
}

/** What a rune says about a question that waits. */
const decisionOf = ({ kind, payload }: AnyRune): Decided | undefined => {
  const { arguments: edited, call_id: callId, channel, reason } = (payload ?? {}) as Readonly<Record<string, unknown>>
  if (typeof callId !== "string") return undefined
  const isElsewhere = channel === agentChannel
  if (kind === "tool.approved") {
    const changed = edited === undefined ? {} : { updatedInput: edited }
    return { callId, decision: isElsewhere ? { _tag: "Unsaid" } : { _tag: "Allow", ...changed } }
  }
  if (kind === "tool.denied") {
    const message = typeof reason === "string" ? reason : "denied"
    return { callId, decision: isElsewhere ? { _tag: "Unsaid" } : { _tag: "Deny", message, interrupt: false } }
  }
  return kind === "tool.result" ? { callId, decision: { _tag: "Unsaid" } } : undefined
}
