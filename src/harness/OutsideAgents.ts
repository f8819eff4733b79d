// Outside agents: prepares their launch, follows those whose holder runs, takes up again what another life of the server has
// left, and answers what their programs report over HTTP. Each agent has a scope; the service owns them all.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { DataDirectory } from "../config/DataDirectory.ts"
import { readServerInfo } from "../config/LocalServer.ts"
import { ConversationAccess } from "../contract/ConversationAccess.ts"
import { DurableNotices } from "../contract/DurableNotices.ts"
import { KnownSecrets } from "../contract/KnownSecrets.ts"
import {
  OutsideAgentAccess,
  type OutsideAgentInfo,
  OutsideAgentRefused,
  type OutsideAgents as OutsideAgentsPort,
  type OutsideAnswer,
  type OutsideRequest
} from "../contract/OutsideAgents.ts"
import { ServerLog } from "../contract/ServerLog.ts"
import { ServerReady } from "../contract/ServerReady.ts"
import { isWireFailure, type WireFailure } from "../contract/WireFailure.ts"
import { monitorView } from "../machine/table/Monitor.ts"
import { attentionOfAgent, monitorOf } from "../machine/view/Supervision.ts"
import { adapterOf } from "./Adapters.ts"
import {
  type AgentPlace,
  directoryOf,
  newToken,
  removeAgent,
  storedAgents,
  tokenKey,
  writeAgent,
  writePlan
} from "./AgentFiles.ts"
import type { HarnessHost } from "./HarnessHost.ts"
import { harnessLimits } from "./HarnessLimits.ts"
import { readState } from "./holder/HolderFiles.ts"
import { attachTerminal } from "./holder/RemoteTerminal.ts"
import { OutsideAgent } from "./OutsideAgent.ts"
import { decodeLogs } from "./otlp/OtlpLogs.ts"
import { type Found, nothingFound } from "./Port.ts"

const refuse = (wireCode: OutsideAgentRefused["wireCode"], message: string): OutsideAgentRefused =>
  new OutsideAgentRefused({ wireCode, message })

interface Held {
  readonly agent: OutsideAgent
  readonly scope: Scope.Closeable
}

const hookPath = "/hooks/claude"
const logPath = "/v1/logs"
const unreadPaths: ReadonlySet<string> = new Set(["/v1/traces", "/v1/metrics"])

const failed = (status: number, message: string): OutsideAnswer => ({ status, json: { error: { message } } })

/** The outside agents of one server. */
class Registry {
  private readonly host: HarnessHost
  private readonly held = new Map<string, Held>()
  private readonly places = new Map<string, AgentPlace>()

  constructor(host: HarnessHost) {
    this.host = host
  }

  private add(place: AgentPlace): void {
    this.places.set(tokenKey(place.token), place)
  }

  private placeOf(conversationId: string): AgentPlace | undefined {
    return [...this.places.values()].find((one) => one.conversationId === conversationId)
  }

  private heldOf(conversationId: string): Effect.Effect<OutsideAgent, OutsideAgentRefused> {
    const held = this.held.get(conversationId)
    return held === undefined
      ? Effect.fail(refuse("invalid_state", `no outside agent of ${conversationId} is running`))
      : Effect.succeed(held.agent)
  }

  readonly prepare: OutsideAgentsPort["prepare"] = ({ command, workspace, harness, ...ids }) =>
    Effect.gen({ self: this }, function* () {
      if (this.places.size >= harnessLimits.agentsMax)
        return yield* refuse("limit_exceeded", `${harnessLimits.agentsMax} outside agents are there already`)
      const adapter = adapterOf(harness)
      const directory = directoryOf(this.host.dataDirectory, ids.conversationId)
      const token = newToken()
      const plan = adapter.prepareForLaunch({ directory, token, command, serverUrl: this.host.serverUrl() })
      const place = { ...ids, harness, workspace, token, directory }
      writeAgent(place)
      writePlan(directory, plan)
      this.add(place)
      const { env, prependArgs: prepend_args } = plan
      return { directory, command: plan.command, prepend_args, env, versions: adapter.versions }
    })

  readonly attach: OutsideAgentsPort["attach"] = (conversationId) =>
    Effect.gen({ self: this }, function* () {
      const place = this.placeOf(conversationId)
      if (place === undefined) return yield* refuse("not_found", `there is no outside agent in ${conversationId}`)
      if (this.held.has(conversationId)) return yield* refuse("invalid_state", "it is attached already")
      const followed = yield* Effect.option(this.follow(place, nothingFound))
      if (followed._tag === "None") return yield* this.overBefore(place)
      const { attached } = followed.value
      if (attached !== undefined) return { event_id: attached.event_id }
      return yield* refuse("invalid_state", "the conversation takes no outside agent")
    })

  /** A program that ended before anybody could follow it was there all the same. */
  private overBefore(place: AgentPlace) {
    return Effect.gen({ self: this }, function* () {
      const state = readState(place.directory)
      if (state === undefined) return yield* refuse("invalid_state", "its program does not run")
      const agent = new OutsideAgent({ place, host: this.host, found: nothingFound, onGone: () => undefined })
      const written = yield* agent.attached(state.pid)
      yield* agent.drain()
      yield* agent.detached(state.exit)
      this.forget(place.conversationId)
      return written ?? (yield* refuse("invalid_state", "the conversation takes no outside agent"))
    })
  }

  private follow(place: AgentPlace, found: Found) {
    return Effect.gen({ self: this }, function* () {
      const { conversationId } = place
      const agent = new OutsideAgent({ place, host: this.host, found, onGone: () => this.forget(conversationId) })
      const scope = yield* Scope.make()
      const unreachable = (): OutsideAgentRefused => refuse("invalid_state", "its program does not run")
      // Known before it is followed: it may be gone again the moment that it is.
      this.held.set(conversationId, { agent, scope })
      const attached = yield* Scope.provide(agent.follow(), scope).pipe(
        Effect.mapError(unreachable),
        Effect.tapError(() =>
          Effect.andThen(
            Effect.sync(() => this.held.delete(conversationId)),
            Scope.close(scope, Exit.void)
          )
        )
      )
      return { agent, attached }
    })
  }

  /** Its program is gone and everything about it is on record. */
  private forget(conversationId: string): void {
    const held = this.held.get(conversationId)
    this.held.delete(conversationId)
    const place = this.placeOf(conversationId)
    if (place !== undefined) {
      this.places.delete(tokenKey(place.token))
      removeAgent(place)
    }
    // Not inside a fiber of the scope that is closed here.
    if (held !== undefined) setImmediate(() => void Effect.runFork(Scope.close(held.scope, Exit.void)))
  }

  /** Takes up what runs, and puts the end of what does not on record. */
  isRunning(conversationId: string): boolean {
    return this.held.has(conversationId)
  }

  get count(): number {
    return this.places.size
  }

  readonly takeUp = Effect.fn("OutsideAgents.takeUp")({ self: this }, function* () {
    for (const place of storedAgents(this.host.dataDirectory)) {
      this.add(place)
      yield* Effect.catch(this.takeUpOne(place), (error) =>
        Effect.sync(() =>
          this.host.log.write("warn", "an outside agent could not be taken up again", {
            conversation_id: place.conversationId,
            cause: String(error)
          })
        )
      )
    }
  })

  private takeUpOne(place: AgentPlace) {
    return Effect.gen({ self: this }, function* () {
      const { agentId, conversationId } = place
      const state = yield* Effect.tryPromise(() => this.host.state(conversationId))
      const agent = state.agents.find((one) => one.agent_id === agentId)
      const shown = agent?.harness?.monitor
      const isBusy = shown !== undefined && monitorView(shown).state === "active"
      const isAttached = agent?.harness?.attached === true
      const { cached_tokens: cached = 0, input_tokens: input = 0, output_tokens: output = 0 } = agent?.usage ?? {}
      const found = { isBusy, counted: { input, output, cached } }
      const followed = yield* Effect.option(this.follow(place, found))
      if (followed._tag === "Some") {
        yield* followed.value.agent.closeOldQuestions()
        return
      }
      const gone = new OutsideAgent({ place, host: this.host, found, onGone: () => undefined })
      if (isAttached) {
        yield* gone.drain()
        yield* gone.detached(readState(place.directory)?.exit)
      }
      this.forget(conversationId)
    })
  }

  readonly list: OutsideAgentsPort["list"] = (conversationId) =>
    Effect.forEach(
      [...this.places.values()].filter((one) => conversationId === undefined || one.conversationId === conversationId),
      (place) => this.info(place)
    )

  private info(place: AgentPlace): Effect.Effect<OutsideAgentInfo, WireFailure> {
    return Effect.map(this.stateOf(place.conversationId), (state) => {
      const agent = state.agents.find((one) => one.agent_id === place.agentId)
      const { agentId: agent_id, conversationId: conversation_id, directory, harness, workspace } = place
      const shown = agent === undefined ? undefined : monitorView(monitorOf(state, agent))
      return {
        conversation_id,
        agent_id,
        harness,
        pid: agent?.harness?.pid ?? null,
        attached: agent?.harness?.attached === true,
        state: shown?.sub_state ?? shown?.state ?? "initialized",
        attention: agent === undefined ? "starting" : attentionOfAgent(state, agent),
        workspace,
        directory
      }
    })
  }

  private stateOf(conversationId: string) {
    return Effect.catch(
      Effect.tryPromise({ try: () => this.host.state(conversationId), catch: (error) => error }),
      (error) => (isWireFailure(error) ? Effect.fail(error) : Effect.die(error))
    )
  }

  readonly send: OutsideAgentsPort["send"] = (conversationId, text, principal) =>
    Effect.gen({ self: this }, function* () {
      const agent = yield* this.heldOf(conversationId)
      if (text.trim() === "") return yield* refuse("bad_request", "the text is empty")
      if (Buffer.byteLength(text) > harnessLimits.inputBytesMax)
        return yield* refuse("limit_exceeded", `input may have ${harnessLimits.inputBytesMax} bytes`)
      if (agent.inputsQueued >= harnessLimits.inputsQueuedMax)
        return yield* refuse("limit_exceeded", `${harnessLimits.inputsQueuedMax} texts wait for it already`)
      const written = yield* agent.recordInput(text, principal)
      if (written._tag !== "Written") return yield* refuse("invalid_state", "the agent is not attached")
      yield* agent.send(text)
      return { event_id: written.event_id }
    })

  readonly interrupt: OutsideAgentsPort["interrupt"] = (conversationId, principal) =>
    Effect.gen({ self: this }, function* () {
      const agent = yield* this.heldOf(conversationId)
      const written = yield* agent.recordInput("[interrupt]", principal)
      if (written._tag !== "Written") return yield* refuse("invalid_state", "the agent is not attached")
      yield* agent.interrupt()
      return { event_id: written.event_id }
    })

  readonly terminal: OutsideAgentsPort["terminal"] = (conversationId, request, listener) =>
    Effect.gen({ self: this }, function* () {
      yield* this.heldOf(conversationId)
      const { directory } = this.placeOf(conversationId) ?? { directory: "" }
      return yield* Effect.tryPromise({
        try: () => attachTerminal(directory, request, listener),
        catch: (error) => refuse("invalid_state", `its terminal cannot be reached: ${(error as Error).message}`)
      })
    })

  placeWith(authorization: string | undefined): AgentPlace | undefined {
    const token = /^Bearer (.{16,200})$/.exec(authorization ?? "")?.[1]
    return token === undefined ? undefined : this.places.get(tokenKey(token))
  }

  readonly receive: OutsideAgentsPort["receive"] = (request) => {
    const place = this.placeWith(request.authorization)
    if (place === undefined) return Effect.succeed(failed(401, "the token of the outside agent is missing or wrong"))
    const held = this.held.get(place.conversationId)
    // It reports before it is followed, or after: what it says through its spool is not lost.
    if (held === undefined) return Effect.succeed({ status: 200, json: {} })
    if (unreadPaths.has(request.path)) return Effect.succeed({ status: 200, json: {} })
    return request.path === logPath ? this.logs(held.agent, request) : this.claudeHook(held.agent, request)
  }

  private logs(agent: OutsideAgent, request: OutsideRequest): Effect.Effect<OutsideAnswer> {
    const { body, contentEncoding: encoding, contentType: type } = request
    const decoded = decodeLogs(body, { type, encoding })
    if (decoded._tag === "Refused") return Effect.succeed(failed(decoded.status, decoded.message))
    const partial = decoded.dropped === 0 ? {} : { partialSuccess: { rejectedLogRecords: decoded.dropped } }
    return Effect.as(agent.telemetry(decoded.records), { status: 200, json: partial })
  }

  private claudeHook(agent: OutsideAgent, { body }: OutsideRequest): Effect.Effect<OutsideAnswer> {
    let value: unknown
    try {
      value = JSON.parse(Buffer.from(body).toString("utf8"))
    } catch {
      return Effect.succeed(failed(400, "the body is not JSON"))
    }
    const name = (value as { hook_event_name?: unknown } | null)?.hook_event_name
    if (typeof name !== "string") return Effect.succeed(failed(400, "hook_event_name is missing"))
    if (name === "PermissionRequest") return Effect.map(agent.ask(value), (json) => ({ status: 200, json }))
    const heard = Effect.andThen(agent.drain(), agent.hook(name, value))
    return Effect.map(heard, ({ isUnwritten }) =>
      isUnwritten === true ? failed(503, "try again") : { status: 200, json: {} }
    )
  }

  notice(conversationId: string, runes: Parameters<OutsideAgent["notice"]>[0]): void {
    this.held.get(conversationId)?.agent.notice(runes)
  }

  readonly close = Effect.suspend(() =>
    Effect.forEach([...this.held.values()], ({ scope }) => Scope.close(scope, Exit.void), { discard: true })
  )
}

const port = (registry: Registry): OutsideAgentsPort => ({
  prepare: registry.prepare,
  attach: registry.attach,
  list: registry.list,
  send: registry.send,
  interrupt: registry.interrupt,
  terminal: registry.terminal,
  receive: registry.receive,
  isRunning: (conversationId) => registry.isRunning(conversationId),
  count: () => registry.count,
  knows: (authorization) => registry.placeWith(authorization) !== undefined,
  answers: (path) => path === hookPath || path === logPath || unreadPaths.has(path),
  bytesMax: harnessLimits.hookBytesMax
})

type Needs = ConversationAccess | DataDirectory | DurableNotices | KnownSecrets | ServerLog | ServerReady

/** The outside agents of a server. What runs when the server starts is taken up behind the open port. */
export const layer: Layer.Layer<OutsideAgentAccess, never, Needs> = Layer.effect(
  OutsideAgentAccess,
  Effect.gen(function* () {
    const { path: dataDirectory } = yield* DataDirectory
    const conversations = yield* ConversationAccess
    const { text: mask } = yield* KnownSecrets
    const ready = yield* ServerReady
    const registry = new Registry({
      dataDirectory,
      serverUrl: () => readServerInfo(dataDirectory)?.url ?? "",
      state: (conversationId) => conversations.state(conversationId),
      submit: (conversationId, command) => conversations.submit(conversationId, command),
      mask,
      nowMs: () => Date.now(),
      log: yield* ServerLog
    })
    yield* DurableNotices.listen({
      name: "outside agents",
      appended: (conversationId, runes) => registry.notice(conversationId, runes)
    })
    yield* Effect.addFinalizer(() => registry.close)
    yield* Effect.forkScoped(Effect.andThen(ready.await, registry.takeUp()))
    return port(registry)
  })
)
