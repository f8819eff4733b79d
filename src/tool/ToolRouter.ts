// All tools as one port: finds the tool of a call among the sources, checks its arguments, asks the policy, shows a
// person what would happen, runs it and keeps its output within bounds. Where a call runs and what it may reach is
// decided once per start; the record of the start and the run itself use the same decision.

import { Readable } from "node:stream"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { BlobPort } from "../contract/Blobs.ts"
import type { Asking, BeforeCall, Objection } from "../contract/CallGates.ts"
import { unknownDefinition } from "../contract/ToolAccess.ts"
import { errorInfo } from "../machine/ErrorTable.ts"
import type { CallState, ConversationState } from "../machine/State.ts"
import { workspaceOf } from "../machine/view/Select.ts"
import type { Evaluate, PolicyQuestion, PolicyVerdict } from "../policy/PolicyPort.ts"
import { dropOldest } from "../rune/Elements.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { ErrorInfo } from "../rune/kinds/shared.ts"
import type { ProgressStream, SandboxInfo, ShownAs } from "../rune/kinds/tool.ts"
import type { SecretMask, SecretStream } from "../rune/Secrets.ts"
import type { SandboxPort } from "../sandbox/SandboxPort.ts"
import type { WorkspaceCheck, WorkspaceChoice } from "../sandbox/WorkspaceCheck.ts"
import { type ArgumentCheck, type CheckedArguments, makeArgumentCheck } from "./Arguments.ts"
import { definitionOf } from "./Definition.ts"
import { type KeepMedia, withMediaKept } from "./Media.ts"
import { fitOutput } from "./Output.ts"
import { selectionOf } from "./Selection.ts"
import { accessOf, type Input, type Tool, type ToolSource } from "./Tool.ts"
import { limits } from "./ToolLimits.ts"
import type { Authorization, ToolContext, ToolOutcome, ToolPort } from "./ToolPort.ts"

export interface RouterOptions {
  /** The first that has a tool of a name has it; later ones of the same name are not offered. */
  readonly sources: ReadonlyArray<ToolSource>
  readonly evaluate: Evaluate
  /** What holds the processes of sandboxed tools. */
  readonly sandbox: Pick<SandboxPort, "level" | "contained">
  /** Rules of the server; those of the conversation come first. */
  readonly rules?: ReadonlyArray<unknown>
  readonly blobs?: BlobPort
  /** Which directories can be workspaces; all of them, unless told. */
  readonly workspaceCheck?: WorkspaceCheck
  /** Keeps what the server knows to be secret out of what tools say. */
  readonly secrets?: SecretMask
  /** Asked about a call that the policy would not refuse; it can only be stricter. */
  readonly beforeCall?: BeforeCall
}

const inputOf = (call: CallState): Input => (call.arguments ?? {}) as Input

/** Where a call works, and whether somebody means it. */
const choiceOf = (
  state: ConversationState,
  { agent_id: agentId }: CallState
): WorkspaceChoice & Pick<ToolContext, "workspace"> => ({
  workspace: workspaceOf(state, agentId),
  unsafe_workspace: state.session.config.unsafe_workspace === true
})

const unknownTool = (name: string) => errorInfo("unknown_tool", `there is no tool named ${name}`)

class Router implements ToolPort {
  private readonly options: RouterOptions
  private readonly argumentCheck: ArgumentCheck = makeArgumentCheck()
  /** Verdicts of calls that are on record as started and whose run begins next, by call and attempt. */
  private readonly decided = new Map<string, PolicyVerdict>()

  constructor(options: RouterOptions) {
    this.options = options
  }

  readonly ready = (state: ConversationState, agentId: AgentId): Effect.Effect<void> =>
    Effect.forEach(this.options.sources, (source) => source.ready?.(state, agentId) ?? Effect.void, {
      concurrency: "unbounded",
      discard: true
    })

  readonly describe = (state: ConversationState, agentId: AgentId) => {
    const { pick } = selectionOf(state, agentId)
    const all = this.options.sources.flatMap((source) => source.tools(state, agentId))
    const byName = new Map<string, Tool>()
    for (const tool of all) if (!byName.has(tool.name)) byName.set(tool.name, tool)
    return [...byName.values()]
      .filter((tool) => pick(tool) !== undefined)
      .map(({ name, description, parameters }) => ({ name, description, parameters }))
  }

  readonly leftOut = (state: ConversationState, agentId: AgentId) =>
    this.options.sources.flatMap((source) => source.leftOut?.(state, agentId) ?? [])

  readonly facts = (state: ConversationState, agentId: AgentId, toolName: string) => {
    const tool = this.find(state, agentId, toolName)
    if (tool === undefined) return undefined
    const { effect_class, mutating, origin, provenance, timeout_ms } = tool
    return {
      effect_class,
      mutating,
      provenance,
      ...(timeout_ms === undefined ? {} : { timeout_ms }),
      ...(provenance !== "remote" || origin === undefined ? {} : { origin })
    }
  }

  readonly authorize = (state: ConversationState, call: CallState, asking?: Asking): Effect.Effect<Authorization> => {
    const self = this
    return Effect.gen(function* () {
      const tool = self.find(state, call.agent_id, call.tool_name)
      if (tool === undefined) return { _tag: "Reject", error: unknownTool(call.tool_name) }
      const checked = yield* self.checked(tool, call)
      if (checked._tag === "Invalid") return { _tag: "Reject", error: errorInfo("invalid_arguments", checked.message) }
      const issue = self.workspaceIssue(state, call, tool)
      if (issue !== undefined) return { _tag: "Deny", reason: issue }
      const policy = self.evaluate(state, call, tool)
      const objection = policy.verdict === "deny" ? undefined : yield* self.objection(state, call, asking)
      const verdict = stricter(policy, objection)
      switch (verdict.verdict) {
        case "allow":
          return { _tag: "Allow", sandbox: self.sandboxOf(state, tool, call, verdict) }
        case "deny":
          return { _tag: "Deny", reason: verdict.reason }
        case "ask": {
          const sandbox = self.sandboxOf(state, tool, call, verdict)
          const shown_as = yield* shownAs(tool, checked.input, choiceOf(state, call), sandbox)
          const { choices, learns, reason: policy_reason } = verdict
          return { _tag: "Ask", policy_reason, shown_as, choices, ...(learns === undefined ? {} : { learns }) }
        }
      }
    })
  }

  readonly judge = (state: ConversationState, call: CallState): "allow" | "ask" | "deny" => {
    const tool = this.find(state, call.agent_id, call.tool_name)
    if (tool === undefined || this.workspaceIssue(state, call, tool) !== undefined) return "deny"
    return this.evaluate(state, call, tool).verdict
  }

  readonly sandbox = (state: ConversationState, call: CallState): SandboxInfo => {
    const tool = this.find(state, call.agent_id, call.tool_name)
    if (tool === undefined) return { level: "none" }
    const verdict = this.evaluate(state, call, tool)
    this.decided.set(keyOf(state, call, { attempt: call.attempt + 1 }), verdict)
    if (this.decided.size > limits.decisionsMax) dropOldest(this.decided)
    const info = this.sandboxOf(state, tool, call, verdict)
    const isUnasked = verdict.verdict === "allow" && call.approval === null
    return isUnasked ? { ...info, allowed_by: verdict.reason } : info
  }

  readonly run = (state: ConversationState, call: CallState, context: ToolContext): Effect.Effect<ToolOutcome> => {
    const self = this
    return Effect.gen(function* () {
      const key = keyOf(state, call, { attempt: context.attempt })
      const remembered = self.decided.get(key)
      self.decided.delete(key)
      const tool = self.find(state, call.agent_id, call.tool_name)
      if (tool === undefined) return { status: "error", error: unknownTool(call.tool_name) }
      // Whoever approved a call may have changed its arguments.
      const checked = yield* self.checked(tool, call)
      if (checked._tag === "Invalid") return { status: "error", error: errorInfo("invalid_arguments", checked.message) }
      const issue = self.workspaceIssue(state, call, tool)
      if (issue !== undefined) return { status: "error", error: errorInfo("workspace_refused", issue) }
      const changed = yield* self.changeOf(state, call, tool)
      if (changed !== undefined) return { status: "error", error: changed }
      const verdict = remembered ?? self.evaluate(state, call, tool)
      if (verdict.verdict === "deny") return { status: "error", error: errorInfo("tool_denied", verdict.reason) }
      const { network } = verdict
      return yield* self.executed(tool, checked.input, { ...context, ...choiceOf(state, call), network })
    })
  }

  /** Runs a tool and keeps what it says within bounds, also when it is interrupted. */
  private executed(tool: Tool, input: Input, context: ToolContext): Effect.Effect<ToolOutcome> {
    const { progress, flush } = this.masking(context)
    let last: ToolOutcome | undefined
    const interruptedWith = (outcome: ToolOutcome): void => {
      last = outcome
    }
    const finish = (outcome: ToolOutcome): Effect.Effect<ToolOutcome> => this.finished(outcome)
    return Effect.suspend(() => tool.run(input, { ...context, progress, interruptedWith })).pipe(
      Effect.flatMap(finish),
      // A tool that breaks against its word has one result like any other.
      Effect.catchCause((cause) =>
        Cause.hasInterrupts(cause) ? Effect.failCause(cause) : Effect.succeed(this.broken(Cause.squash(cause)))
      ),
      Effect.onInterrupt(() =>
        last === undefined ? Effect.void : Effect.map(finish(last), (outcome) => context.interruptedWith(outcome))
      ),
      Effect.ensuring(Effect.sync(flush))
    )
  }

  private finished(outcome: ToolOutcome): Effect.Effect<ToolOutcome> {
    const keeping = Effect.promise(() => withMediaKept(outcome, this.keepMedia))
    return Effect.flatMap(keeping, (kept) => this.fitted(this.masked(kept)))
  }

  private broken(error: unknown): ToolOutcome {
    const message = error instanceof Error ? error.message : String(error)
    return this.masked({ status: "error", error: errorInfo("tool_execution_failed", message.slice(0, 2_000)) })
  }

  private checked(tool: Tool, call: CallState): Effect.Effect<CheckedArguments> {
    return Effect.promise(() => this.argumentCheck.check(tool, call.arguments))
  }

  private objection(...call: Parameters<BeforeCall>): Effect.Effect<Objection | undefined> {
    const { beforeCall } = this.options
    return beforeCall === undefined ? Effect.succeed(undefined) : Effect.promise(() => beforeCall(...call))
  }

  /** What was approved is what was defined then: a tool that is another one by now is not run with that approval. */
  private changeOf(state: ConversationState, call: CallState, tool: Tool): Effect.Effect<ErrorInfo | undefined> {
    const asked = call.approval?.shown_as.definition
    if (asked === undefined || asked === unknownDefinition) return Effect.succeed(undefined)
    return Effect.map(this.definitionNow(state, call, tool), (now) =>
      now === asked || now === unknownDefinition
        ? undefined
        : errorInfo("tool_changed", `${call.tool_name} is defined differently than when it was approved; call it again`)
    )
  }

  /** The definition of a tool, asked for again where its source had not told it. */
  private definitionNow(state: ConversationState, call: CallState, tool: Tool): Effect.Effect<string | undefined> {
    const now = definitionOf(tool)
    const owner = call.agent_id ?? state.session.root_agent_id
    if (now !== unknownDefinition || owner === null) return Effect.succeed(now)
    return Effect.map(this.ready(state, owner), () => {
      const found = this.find(state, owner, call.tool_name)
      return found === undefined ? undefined : definitionOf(found)
    })
  }

  private masking({ progress }: ToolContext): {
    readonly progress: ToolContext["progress"]
    readonly flush: () => void
  } {
    const { secrets } = this.options
    if (secrets === undefined) return { progress, flush: () => undefined }
    const streams = new Map<ProgressStream, SecretStream>()
    return {
      progress: (name, chunk) => {
        const stream = streams.get(name) ?? secrets.stream()
        streams.set(name, stream)
        const text = stream.push(chunk)
        if (text !== "") progress(name, text)
      },
      flush: () => {
        for (const [name, stream] of streams) {
          const rest = stream.end()
          if (rest !== "") progress(name, rest)
        }
      }
    }
  }

  private readonly keepMedia: KeepMedia = (bytes, mediaType) => {
    const { blobs } = this.options
    if (blobs === undefined) return Promise.reject(new Error("there is no place to keep it"))
    return blobs.keep(Readable.from([bytes]), mediaType)
  }

  private masked(outcome: ToolOutcome): ToolOutcome {
    const { secrets } = this.options
    const { error, output } = outcome
    if (secrets === undefined) return outcome
    return {
      ...outcome,
      ...(output === undefined ? {} : { output: secrets.text(output) }),
      ...(error === undefined ? {} : { error: { ...error, message: secrets.text(error.message) } })
    }
  }

  private find(state: ConversationState, agentId: AgentId | null, name: string): Tool | undefined {
    const { root_agent_id } = state.session
    const owner = agentId ?? root_agent_id
    if (owner === null) return undefined
    for (const source of this.options.sources) {
      const tool = source.find(state, owner, name)
      if (tool !== undefined) return selectionOf(state, owner).pick(tool)
    }
    return undefined
  }

  /** Looked at each time: what was no home when the conversation was created may lead to one by now. */
  private workspaceIssue(state: ConversationState, call: CallState, tool: Tool): string | undefined {
    const isWithout = tool.approval === "never" || tool.approval === "always"
    return isWithout ? undefined : this.options.workspaceCheck?.(choiceOf(state, call))
  }

  private isContained(tool: Tool): boolean {
    return tool.sandboxed === true ? this.options.sandbox.contained : tool.provenance === "builtin"
  }

  private evaluate(state: ConversationState, call: CallState, tool: Tool): PolicyVerdict {
    const { policy } = state.session.config
    const access = accessOf(tool, inputOf(call))
    if (access === undefined) return { verdict: "deny", reason: `${tool.name}: its arguments do not tell what it does` }
    const definition = definitionOf(tool)
    const question: PolicyQuestion = {
      tool_name: tool.name,
      mutating: tool.mutating,
      effect_class: tool.effect_class,
      provenance: tool.provenance,
      ...(definition === undefined ? {} : { definition }),
      approval: tool.approval ?? "by_policy",
      contained: this.isContained(tool),
      access,
      arguments_hash: call.arguments_hash,
      mode: policy?.mode ?? "auto",
      rules: [...(policy?.rules ?? []), ...(this.options.rules ?? [])],
      grants: state.grants,
      workspace: workspaceOf(state, call.agent_id),
      // The clock of the log: the same question later has the same answer.
      now_ms: state.last_ms
    }
    return this.options.evaluate(question)
  }

  private sandboxOf(state: ConversationState, tool: Tool, call: CallState, verdict: PolicyVerdict): SandboxInfo {
    const network = verdict.verdict !== "deny" && verdict.network
    const workspace = workspaceOf(state, call.agent_id)
    const roots = workspace === undefined ? [] : [workspace]
    if (tool.sandboxed === true) return { level: this.options.sandbox.level, network, roots }
    if (tool.approval === "never") return { level: "in_process", network: false, roots: [] }
    if (tool.provenance === "builtin") {
      return accessOf(tool, inputOf(call))?.url === undefined
        ? { level: "path_checks", network: false, roots }
        : { level: "address_checks", network: true, roots: [] }
    }
    // An MCP server, a client or an embedding program: nothing of ours holds it.
    return { level: "none", network: true }
  }

  private fitted(outcome: ToolOutcome): Effect.Effect<ToolOutcome> {
    const { output, output_blob } = outcome
    if (output === undefined || output_blob !== undefined || typeof output !== "string") return Effect.succeed(outcome)
    const fitting = fitOutput(output, { charsMax: limits.outputCharsMax, blobs: this.options.blobs })
    return Effect.map(fitting, (kept) => ({ ...outcome, ...kept }))
  }
}

/** An objection turns an answer into a question or into a no, and never the other way. */
const stricter = (policy: PolicyVerdict, objection: Objection | undefined): PolicyVerdict => {
  if (objection === undefined || policy.verdict === "deny") return policy
  if (objection._tag === "Deny") return { verdict: "deny", reason: objection.reason }
  return { verdict: "ask", reason: objection.reason, network: policy.network, choices: ["once"] }
}

const keyOf = (state: ConversationState, call: CallState, { attempt }: { readonly attempt: number }): string =>
  `${state.conversation_id} ${call.call_id} ${attempt}`

const cut = (text: string, charsMax: number): string =>
  text.length <= charsMax
    ? text
    : `${text.slice(0, charsMax).toWellFormed()}\n… ${text.length - charsMax} characters more`

const withinBounds = ({ detail, diff, title, ...rest }: ShownAs): ShownAs => ({
  ...rest,
  title: cut(title, limits.shownTitleCharsMax),
  ...(detail === undefined ? {} : { detail: cut(detail, limits.shownDetailCharsMax) }),
  ...(diff === undefined ? {} : { diff: cut(diff, limits.shownDiffCharsMax) })
})

/** What would happen, as far as it can be told in time: a question is asked in any case. */
const previewOf = (tool: Tool, input: Input, place: WorkspaceChoice): Effect.Effect<ShownAs> => {
  const plain: ShownAs = { title: tool.name, detail: JSON.stringify(input, null, 2) }
  return Effect.suspend(() => tool.preview(input, place)).pipe(
    Effect.timeoutOption(limits.previewMsMax),
    Effect.map(Option.getOrElse(() => plain)),
    Effect.catchCause((cause) => {
      if (Cause.hasInterrupts(cause)) return Effect.failCause(cause)
      const error = Cause.squash(cause)
      const reason = error instanceof Error ? error.message : "it failed"
      return Effect.succeed({ ...plain, detail: `${plain.detail}\n(no preview: ${reason})` })
    })
  )
}

const definedAs = (tool: Tool): Pick<ShownAs, "definition" | "origin"> => {
  const definition = definitionOf(tool)
  return {
    ...(tool.origin === undefined ? {} : { origin: cut(tool.origin, limits.shownTitleCharsMax) }),
    ...(definition === undefined ? {} : { definition })
  }
}

const shownAs = (
  tool: Tool,
  input: Input,
  place: WorkspaceChoice,
  { network, roots }: SandboxInfo
): Effect.Effect<ShownAs> =>
  Effect.map(previewOf(tool, input, place), (preview) =>
    withinBounds({
      ...preview,
      ...definedAs(tool),
      ...(place.workspace === undefined ? {} : { workspace: place.workspace }),
      ...(roots === undefined ? {} : { roots }),
      ...(network === undefined ? {} : { network })
    })
  )

export const makeRouter = (options: RouterOptions): ToolPort => new Router(options)
