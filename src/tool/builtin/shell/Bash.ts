// The tool `bash`: a command in the sandbox, or in a shell session that stays between calls. Whatever a call started is
// gone when the call is over, except in a session, which says at every look what still runs in it.
import * as Effect from "effect/Effect"
import type { BlobPort } from "../../../contract/Blobs.ts"
import type { Access } from "../../../contract/ToolAccess.ts"
import type { ProcessEnded, ProcessPort } from "../../../sandbox/process/ProcessPort.ts"
import { type NotBegun, runProcess } from "../../../sandbox/process/ProcessWork.ts"
import { defineTool } from "../../DefineTool.ts"
import { processOutput } from "../../Output.ts"
import type { Tool } from "../../Tool.ts"
import type { ToolContext, ToolOutcome } from "../../ToolPort.ts"
import { type BashInput, bashInput, type Wish, wishOf } from "./Arguments.ts"
import { notStarted, shellError, shellFailure } from "./Errors.ts"
import { shellLimits } from "./Limits.ts"
import { type Look, type Session, shellArguments } from "./Session.ts"
import { Sessions, SessionsFull } from "./Sessions.ts"

export interface BashOptions {
  readonly processes: ProcessPort
  /** Where output goes that does not fit inline. */
  readonly blobs?: BlobPort
  /** The shell that commands are for. */
  readonly shell?: string
  readonly sessionIdleMs?: number
}

export interface Bash {
  readonly tool: Tool
  /** Ends the sessions of a conversation. */
  readonly closeConversation: (conversationId: string) => Effect.Effect<void>
  readonly close: Effect.Effect<void>
}

const description = [
  "Runs a command with bash in the workspace directory and returns what it prints.",
  "It may read the system and write to the workspace and to /tmp; the network only when asked for with `network`.",
  "Its output is no terminal and no file: write errors with `>&2`, not to /dev/stderr.",
  "Without a session everything it started ends with it. With `session` it runs in a shell that stays: a command that",
  "takes longer goes on, `{session}` looks at it again, `{session, input}` answers it, `{session, close: true}` ends it.",
  "Without arguments it lists the sessions and what runs in them."
].join(" ")

/** What the policy has to know. Looking at a session and ending it touches only what was allowed before. */
const accessOf = (input: BashInput): Access => {
  const wish = wishOf(input)
  switch (wish._tag) {
    case "Run":
    case "RunIn": {
      const state = wish._tag === "RunIn" ? { stateful: true } : {}
      return { command: wish.command, ...state, ...(wish.network ? { network: true } : {}) }
    }
    case "Type":
      return wish.network ? { network: true } : {}
    case "Look":
    case "Close":
    case "List":
      return { control: true }
    default:
      return {}
  }
}

const titleOf = (wish: Wish): { readonly title: string; readonly detail?: string } => {
  switch (wish._tag) {
    case "Run":
      return { title: "run a command", detail: wish.command }
    case "RunIn":
      return { title: `run a command in session ${wish.session}`, detail: wish.command }
    case "Type":
      return { title: `type into session ${wish.session}`, detail: wish.input }
    case "Look":
      return { title: `look at session ${wish.session}` }
    case "Close":
      return { title: `end session ${wish.session}` }
    case "List":
      return { title: "list the shell sessions" }
    case "Wrong":
      return { title: "run a command", detail: wish.problem }
  }
}

const outcomeOf = (ended: ProcessEnded, timeoutMs: number): Omit<ToolOutcome, "output"> => {
  const { end, exit_code, signal } = ended
  const exit = exit_code === null ? {} : { exit_code }
  switch (end) {
    case "aborted":
      return { status: "cancelled", ...exit }
    case "timeout":
      return { status: "timeout", error: shellError("command_timeout", `the command took longer than ${timeoutMs} ms`) }
    case "disk_reserve":
      return {
        status: "error",
        error: shellError("disk_reserve", "the command was ended: it left too little free space")
      }
    case "killed":
      return { status: "error", error: shellError("command_killed", `the command was ended by ${signal}`) }
    case "exited":
      return exit_code === 0
        ? { status: "success", exit_code }
        : {
            status: "error",
            ...exit,
            error: shellError("command_failed", `the command ended with exit code ${exit_code}`)
          }
  }
}

const processLines = (session: Session): ReadonlyArray<string> => {
  const all = session.processes
  const shown = all.slice(0, shellLimits.listedProcessesMax).map(({ command, pid }) => `  ${pid} ${command}`)
  return all.length > shown.length ? [...shown, `  … and ${all.length - shown.length} more`] : shown
}

const standingLine = (session: Session): string => {
  const standing = session.stands()
  const name = `session ${session.name}`
  if (standing._tag === "Busy") return `[${name}: still running: ${standing.command.slice(0, 200)}]`
  if (standing._tag === "Ended") return `[${name}: over]`
  return `[${name}: ready]`
}

const withStanding = (output: string, session: Session): string => {
  const end = output === "" || output.endsWith("\n") ? "" : "\n"
  return `${output}${end}${[standingLine(session), ...processLines(session)].join("\n")}\n`
}

const lookOutcome = (session: Session, { output, standing }: Look): ToolOutcome => {
  const text = withStanding(output, session)
  if (standing._tag === "Busy") return { status: "success", output: text }
  const { exitCode } = standing
  const exit = exitCode === undefined ? {} : { exit_code: exitCode }
  if (exitCode === undefined || exitCode === 0) return { status: "success", output: text, ...exit }
  const error = shellError("command_failed", `the command ended with exit code ${exitCode}`)
  return { status: "error", output: text, ...exit, error }
}

/** What is done in a session can reach what the session reaches: a call that does not say so is not what was allowed. */
const networkIssue = (session: Session, wish: { readonly network: boolean }, context: ToolContext) => {
  const network = wish.network && context.network === true
  if (session.isEnded || network === session.network) return undefined
  const fact = session.network
    ? "has the network: say network: true, or start another one"
    : "was started without the network: leave network out, or start another one"
  return shellFailure("session_network", `session ${session.name} ${fact}`)
}

class BashTool {
  private readonly options: BashOptions
  readonly sessions: Sessions

  constructor(options: BashOptions) {
    this.options = options
    this.sessions = new Sessions(options.processes, options.sessionIdleMs)
  }

  run(input: BashInput, context: ToolContext): Effect.Effect<ToolOutcome> {
    const wish = wishOf(input)
    const { workspace } = context
    if (wish._tag === "Wrong") return Effect.succeed(shellFailure("invalid_arguments", wish.problem))
    if (workspace === undefined)
      return Effect.succeed(shellFailure("no_workspace", "this conversation has no workspace"))
    if (wish._tag === "List") return Effect.sync(() => this.list(context))
    const work = wish._tag === "Run" ? this.runOnce(wish, workspace, context) : this.inSession(wish, workspace, context)
    return Effect.catch(work, (error) =>
      Effect.succeed(error instanceof SessionsFull ? shellFailure("sessions_full", error.message) : notStarted(error))
    )
  }

  private get shell(): string {
    return this.options.shell ?? "bash"
  }

  private runOnce(
    { command, network, timeoutMs = shellLimits.commandMs }: Extract<Wish, { readonly _tag: "Run" }>,
    workspace: string,
    context: ToolContext
  ): Effect.Effect<ToolOutcome, NotBegun> {
    const outcome = (ended: ProcessEnded): Effect.Effect<ToolOutcome> =>
      Effect.map(processOutput(ended, this.options.blobs), (kept) => ({ ...outcomeOf(ended, timeoutMs), ...kept }))
    const request = {
      argv: [this.shell, ...shellArguments, "-c", command],
      directory: workspace,
      writable: [workspace],
      network: network && context.network === true,
      outputCharsMax: shellLimits.outputCharsMax,
      timeoutMs,
      onOutput: context.progress
    }
    const interrupted = (ended: ProcessEnded): Effect.Effect<void> =>
      Effect.map(outcome(ended), context.interruptedWith)
    return Effect.flatMap(runProcess(this.options.processes, request, interrupted), outcome)
  }

  private list(context: ToolContext): ToolOutcome {
    const sessions = this.sessions.list(context)
    const lines = sessions.flatMap((session) => [standingLine(session), ...processLines(session)])
    return { status: "success", output: lines.length === 0 ? "no sessions\n" : `${lines.join("\n")}\n` }
  }

  private inSession(
    wish: Exclude<Wish, { readonly _tag: "Run" | "List" | "Wrong" }>,
    workspace: string,
    context: ToolContext
  ): Effect.Effect<ToolOutcome, NotBegun | SessionsFull> {
    const found = this.sessions.find(context, wish.session)
    if (wish._tag === "RunIn") return this.runIn(wish, found, workspace, context)
    if (found === undefined)
      return Effect.succeed(shellFailure("session_unknown", `there is no session ${wish.session}`))
    if (wish._tag === "Close") return this.close(found, context)
    const issue = wish._tag === "Type" ? networkIssue(found, wish, context) : undefined
    if (issue !== undefined) return Effect.succeed(issue)
    const wait = { ms: wish.timeoutMs ?? shellLimits.waitMs, untilQuiet: true }
    const looking =
      wish._tag === "Type" ? found.input(wish.input, wait, context.progress) : found.look(wait, context.progress)
    return this.answered(found, looking, context)
  }

  private close(session: Session, context: ToolContext): Effect.Effect<ToolOutcome> {
    return this.sessions.close(context, session.name).pipe(
      Effect.andThen(session.look({ ms: 0, untilQuiet: false }, context.progress)),
      Effect.map(({ output }) => ({ status: "success", output: withStanding(output, session) }))
    )
  }

  private runIn(
    wish: Extract<Wish, { readonly _tag: "RunIn" }>,
    found: Session | undefined,
    workspace: string,
    context: ToolContext
  ): Effect.Effect<ToolOutcome, NotBegun | SessionsFull> {
    if (found?.isBusy === true)
      return Effect.succeed(
        shellFailure(
          "session_busy",
          `session ${wish.session} still runs a command; look at it, type into it or close it`
        )
      )
    const issue = found === undefined ? undefined : networkIssue(found, wish, context)
    if (issue !== undefined) return Effect.succeed(issue)
    const wait = { ms: wish.timeoutMs ?? shellLimits.waitMs, untilQuiet: false }
    return Effect.flatMap(this.sessionFor(wish, found, workspace, context), (session) =>
      // A call that was interrupted leaves nothing behind that it started.
      Effect.onInterrupt(this.answered(session, session.run(wish.command, wait, context.progress), context), () =>
        this.sessions.close(context, wish.session)
      )
    )
  }

  /** The session that is there, or a new one where there is none or it is over. */
  private sessionFor(
    wish: Extract<Wish, { readonly _tag: "RunIn" }>,
    found: Session | undefined,
    workspace: string,
    context: ToolContext
  ): Effect.Effect<Session, NotBegun | SessionsFull> {
    if (found?.isEnded === false) return Effect.succeed(found)
    const { agent_id, conversation_id } = context
    const network = wish.network && context.network === true
    const options = { name: wish.session, workspace, network, shell: this.shell }
    const opening = this.sessions.open({ agent_id, conversation_id }, options)
    return found === undefined ? opening : Effect.andThen(this.sessions.close(context, wish.session), opening)
  }

  private answered(session: Session, looking: Effect.Effect<Look>, context: ToolContext): Effect.Effect<ToolOutcome> {
    const answer = (look: Look): Effect.Effect<ToolOutcome> => {
      const outcome = lookOutcome(session, look)
      return session.isEnded ? Effect.as(this.sessions.close(context, session.name), outcome) : Effect.succeed(outcome)
    }
    return Effect.onInterrupt(Effect.flatMap(looking, answer), () =>
      Effect.sync(() => context.interruptedWith({ status: "cancelled", output: session.take().output }))
    )
  }
}

export const makeBash = (options: BashOptions): Bash => {
  const bash = new BashTool(options)
  return {
    tool: defineTool({
      name: "bash",
      description,
      input: bashInput,
      // Models have never seen a list of required arguments here: which are needed depends on the others.
      describe: ({ required: _, ...parameters }) => parameters,
      effect_class: "effect",
      mutating: true,
      timeout_ms: shellLimits.commandMsMax + 10_000,
      sandboxed: true,
      access: accessOf,
      preview: (input, { workspace }) =>
        Effect.succeed({
          ...titleOf(wishOf(input)),
          ...(workspace === undefined ? {} : { workspace, roots: [workspace] }),
          network: input.network === true
        }),
      run: (input, context) => Effect.suspend(() => bash.run(input, context))
    }),
    closeConversation: bash.sessions.closeConversation,
    close: bash.sessions.closeAll
  }
}
