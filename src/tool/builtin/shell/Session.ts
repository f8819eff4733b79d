// A shell that stays: directory, variables and background processes outlive a command. Commands reach it by a channel
// of their own and its answers come back by another, so that standard input belongs to the program that runs, and the
// end of a command is known and never guessed from what it printed.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { after, type Cancel } from "../../../contract/Timers.ts"
import { HeadTail } from "../../../sandbox/process/HeadTail.ts"
import type { ProcessPort, RunningProcess } from "../../../sandbox/process/ProcessPort.ts"
import { type NotBegun, startProcess } from "../../../sandbox/process/ProcessWork.ts"
import { shellLimits } from "./Limits.ts"

/** Runs what arrives on descriptor 3 and answers with its exit code on descriptor 4; programs see neither. */
const driver = `while IFS= read -r -d '' -u 3 echs_command; do eval "$echs_command" 3<&- 4>&-; printf '%s\\0' "$?" >&4; done`

export const shellArguments = ["--noprofile", "--norc"] as const

export interface SessionOptions {
  readonly name: string
  readonly workspace: string
  readonly network: boolean
  readonly shell: string
}

/** How a session stands when somebody looks. */
export type Standing =
  | { readonly _tag: "Idle"; readonly exitCode: number | undefined }
  | { readonly _tag: "Busy"; readonly command: string }
  | { readonly _tag: "Ended"; readonly exitCode: number | undefined }

export interface Look {
  /** What was printed since the last look. */
  readonly output: string
  readonly standing: Standing
}

interface Wait {
  readonly ms: number
  /** A pause in the output ends it as well. */
  readonly untilQuiet: boolean
}

type Tell = (stream: "stdout" | "stderr", text: string) => void

export class Session {
  readonly name: string
  readonly network: boolean
  private readonly running: RunningProcess
  private readonly state = {
    output: new HeadTail(shellLimits.outputCharsMax),
    status: "",
    listeners: new Set<() => void>()
  }
  private standing: Standing = { _tag: "Idle", exitCode: undefined }
  private readonly pace: { bytes: number; cancel: Cancel | undefined } = { bytes: 0, cancel: undefined }
  private tell: Tell | undefined

  private constructor(options: SessionOptions, running: RunningProcess) {
    this.name = options.name
    this.network = options.network
    this.running = running
    void running.ended.then(({ exit_code: exitCode }) => {
      this.standing = { _tag: "Ended", exitCode: exitCode ?? undefined }
      this.changed()
    })
  }

  /** A shell that runs until the scope ends. */
  static readonly open: (
    processes: ProcessPort,
    options: SessionOptions
  ) => Effect.Effect<Session, NotBegun, Scope.Scope> = Effect.fnUntraced(function* (processes, options) {
    // Output may come before there is a session to take it.
    let session: Session | undefined
    const early: Array<readonly [string | number, Buffer]> = []
    const running = yield* startProcess(processes, {
      argv: [options.shell, ...shellArguments, "-c", driver],
      directory: options.workspace,
      writable: [options.workspace],
      network: options.network,
      channels: ["in", "out"],
      onOutput: (stream, bytes) =>
        session === undefined ? void early.push([stream, bytes]) : session.receive(stream, bytes)
    })
    session = new Session(options, running)
    for (const [stream, bytes] of early) session.receive(stream, bytes)
    return session
  })

  get isBusy(): boolean {
    return this.standing._tag === "Busy"
  }

  get isEnded(): boolean {
    return this.standing._tag === "Ended"
  }

  get processes(): ReadonlyArray<{ readonly pid: number; readonly command: string }> {
    // The first is the shell itself; its copies run what has no program of its own.
    const shown = ({ command, pid }: { readonly pid: number; readonly command: string }) => ({
      pid,
      command: command.includes("echs_command") ? "(part of the shell)" : command
    })
    return this.running.processes().slice(1).map(shown)
  }

  /** Output of this call is also told as it comes. */
  run(command: string, wait: Wait, tell: Tell): Effect.Effect<Look> {
    return Effect.suspend(() => {
      this.standing = { _tag: "Busy", command }
      return this.after(() => this.running.write(`${command}\0`, 3), wait, tell)
    })
  }

  input(text: string, wait: Wait, tell: Tell): Effect.Effect<Look> {
    return this.after(() => this.running.write(text), wait, tell)
  }

  private after(writing: () => Promise<boolean>, wait: Wait, tell: Tell): Effect.Effect<Look> {
    return Effect.andThen(Effect.promise(writing), this.look(wait, tell))
  }

  /** Waits until the command has ended, or the time is over; then takes what was printed. */
  look(wait: Wait, tell: Tell): Effect.Effect<Look> {
    const waiting = Effect.suspend(() => {
      this.tell = tell
      return this.settled(wait)
    })
    const ended = Effect.sync(() => {
      this.tell = undefined
    })
    return Effect.map(Effect.ensuring(waiting, ended), () => this.take())
  }

  /** What was printed since the last look. */
  take(): Look {
    const output = this.state.output.toString()
    this.state.output = new HeadTail(shellLimits.outputCharsMax)
    return { output, standing: this.standing }
  }

  /** How it stands now, without waiting. */
  stands(): Standing {
    return this.standing
  }

  private receive(stream: string | number, bytes: Buffer): void {
    if (stream === 4) this.receiveStatus(bytes.toString("latin1"))
    else {
      this.state.output.add(bytes)
      this.slowDown(bytes.length)
      this.tell?.(stream === "stderr" ? "stderr" : "stdout", bytes.toString("utf8"))
    }
    this.changed()
  }

  /** A program that prints without end is read at a bounded pace, so that it does not take a processor of the server. */
  private slowDown(bytes: number): void {
    this.pace.bytes += bytes
    this.pace.cancel ??= after(shellLimits.paceMs, () => {
      this.pace.bytes = 0
      this.pace.cancel = undefined
      this.running.resume()
    })
    if (this.pace.bytes > shellLimits.paceBytesMax) this.running.pause()
  }

  private receiveStatus(text: string): void {
    const parts = (this.state.status + text).split("\0")
    this.state.status = parts.pop() ?? ""
    const last = parts.at(-1)
    if (last !== undefined && this.standing._tag === "Busy") this.standing = { _tag: "Idle", exitCode: Number(last) }
  }

  private changed(): void {
    for (const listener of [...this.state.listeners]) listener()
  }

  /** Ends when nothing more is to be expected soon. */
  private settled({ ms, untilQuiet }: Wait): Effect.Effect<void> {
    return Effect.callback((resume) => {
      let cancelPause: Cancel | undefined
      const stop = (): void => {
        cancelPause?.()
        cancelDeadline()
        this.state.listeners.delete(onChange)
      }
      const done = (): void => {
        stop()
        resume(Effect.void)
      }
      const pauseMs = (): number | undefined =>
        this.isBusy
          ? untilQuiet && this.state.output.total > 0
            ? shellLimits.quietMs
            : undefined
          : shellLimits.settleMs
      const onChange = (): void => {
        cancelPause?.()
        const waitMs = pauseMs()
        if (waitMs !== undefined) cancelPause = after(waitMs, done)
      }
      const cancelDeadline = after(ms, done)
      this.state.listeners.add(onChange)
      onChange()
      return Effect.sync(stop)
    })
  }
}
