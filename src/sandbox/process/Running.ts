// One program that runs, with all it started. It is over when its first process has ended and nothing of its tree is
// left; ending it asks every process first, and makes them a second later.
import type { ChildProcess } from "node:child_process"
import type { Readable, Writable } from "node:stream"
import { setTimeout as sleep } from "node:timers/promises"
import { type GateAnswer, passGate } from "../LaunchGate.ts"
import { sandboxLimits } from "../SandboxLimits.ts"
import type { Gate, SandboxedCommand } from "../SandboxPort.ts"
import { type Stdio, spawnSandboxed } from "../Spawn.ts"
import { ProcessNotStarted } from "./ProcessErrors.ts"
import { processLimits } from "./ProcessLimits.ts"
import type { OutputStream, RunningProcess, StartRequest } from "./ProcessPort.ts"
import type { Reaper } from "./Reaper.ts"
import { commandOf, descendantsOf, isAlive, markedWith, markName, signal } from "./Tree.ts"

export interface RunningParts {
  readonly command: SandboxedCommand
  /** In the environment of everything it starts. */
  readonly mark: string
  readonly channels: ReadonlyArray<"in" | "out">
  readonly hasInput: boolean
  readonly onOutput: StartRequest["onOutput"]
  /** Ends it when the server is killed, where it would not end by itself. */
  readonly reaper?: Reaper | undefined
}

export type Exit = Awaited<RunningProcess["ended"]>

const swallow = (): undefined => undefined

export class Running implements RunningProcess {
  readonly pid: number
  readonly ended: Promise<Exit>
  /** How the sandbox answered: the program itself has begun only when it is open. */
  readonly entered: Promise<GateAnswer>
  private readonly child: ChildProcess
  private readonly parts: RunningParts
  private readonly outputs: ReadonlyArray<Readable>
  private readonly startedMs = performance.now()
  private isOver = false
  private hasBegun: boolean
  private complaint = ""
  private killing: Promise<void> | undefined

  private constructor(child: ChildProcess, pid: number, parts: RunningParts) {
    this.child = child
    this.pid = pid
    this.parts = parts
    const { gate } = parts.command
    this.hasBegun = gate === undefined
    this.entered = gate === undefined ? Promise.resolve({ _tag: "Open" }) : this.enter(gate)
    this.outputs = this.listen()
    this.ended = this.untilEnded()
    this.register()
  }

  /** Rejects with ProcessNotStarted when there is no such program. */
  static start(parts: RunningParts): Promise<Running> {
    const { channels, command, hasInput } = parts
    const stdio: ReadonlyArray<Stdio> = [
      hasInput ? "pipe" : "ignore",
      "pipe",
      "pipe",
      ...channels.map(() => "pipe" as const)
    ]
    return new Promise((resolve, reject) => {
      const fail = (error: Error): void => reject(new ProcessNotStarted("not_found", command.file, error.message))
      try {
        const environment = { ...command.environment, [markName]: parts.mark }
        const child = spawnSandboxed({ command: { ...command, environment }, stdio })
        child.once("error", fail)
        if (child.pid !== undefined) resolve(new Running(child, child.pid, parts))
      } catch (error) {
        fail(error as Error)
      }
    })
  }

  write(text: string | Uint8Array, channel = 0): Promise<boolean> {
    const stream = this.child.stdio[channel] as Writable | null | undefined
    if (stream?.writable !== true) return Promise.resolve(false)
    return new Promise((resolve) => stream.write(text, (error) => resolve(error === null || error === undefined)))
  }

  /** Hands the text over and ends the channel. */
  send(text: string, channel: number): void {
    const stream = this.child.stdio[channel] as Writable | null | undefined
    // It may end before it has read them: how it ended says more than that.
    stream?.on("error", swallow)
    stream?.end(text)
  }

  get isEnded(): boolean {
    return this.isOver || this.child.exitCode !== null || this.child.signalCode !== null
  }

  /** What the sandbox said on its own account, before there was a program. */
  get sandboxComplaint(): string {
    return this.complaint.trim().split("\n")[0] ?? ""
  }

  /** Whether this process stays alive for the sake of that one. */
  hold({ isHeld }: { readonly isHeld: boolean }): void {
    for (const part of [this.child, ...this.child.stdio]) {
      const handle = part as { readonly ref?: () => unknown; readonly unref?: () => unknown } | null | undefined
      if (isHeld) handle?.ref?.()
      else handle?.unref?.()
    }
  }

  endInput(): void {
    this.child.stdin?.end()
  }

  pause(): void {
    for (const output of this.outputs) output.pause()
  }

  resume(): void {
    for (const output of this.outputs) output.resume()
  }

  processes(): ReadonlyArray<{ readonly pid: number; readonly command: string }> {
    return this.members().map((pid) => ({ pid, command: commandOf(pid) }))
  }

  kill(): Promise<void> {
    this.killing ??= this.end()
    return this.killing
  }

  /** Everything it started. The sandbox's own two processes are no part of that. */
  private members(): ReadonlyArray<number> {
    if (this.isOver) return []
    if (!this.parts.command.isNamespace) return [this.pid, ...descendantsOf(this.pid)]
    const [first] = descendantsOf(this.pid)
    return first === undefined ? [] : descendantsOf(first)
  }

  private async end(): Promise<void> {
    if (this.isOver) return
    const { isNamespace } = this.parts.command
    const members = this.members()
    for (const pid of members) signal(pid, "SIGTERM")
    if (!isNamespace) signal(-this.pid, "SIGTERM")
    const timer = new AbortController()
    // Where nothing has begun yet there is nobody to wait for.
    if (members.length === 0) timer.abort()
    await Promise.race([
      this.ended,
      sleep(processLimits.killAfterMs, undefined, { signal: timer.signal }).catch(swallow)
    ])
    timer.abort()
    // The first process inside takes the whole namespace with it; the one outside would, too, when it is gone.
    const inside = isNamespace ? descendantsOf(this.pid).slice(0, 1) : this.members()
    if (!this.isOver) for (const pid of [...inside, -this.pid, this.pid]) signal(pid, "SIGKILL")
    await this.ended
  }

  /** A sandbox ends with the server from the moment its program begins; all else until it is over. */
  private register(): void {
    const { command, reaper } = this.parts
    reaper?.add(this.pid)
    const over: Promise<unknown> = command.isNamespace ? Promise.race([this.entered, this.ended]) : this.ended
    void over.then(() => reaper?.remove(this.pid))
  }

  private async enter(gate: Gate): Promise<GateAnswer> {
    const answer = await passGate(this.child, gate, () => {
      this.hasBegun = true
    })
    if (answer._tag === "Violated") void this.kill()
    return answer
  }

  private hear(name: OutputStream | number, bytes: Buffer): void {
    if (this.hasBegun) this.parts.onOutput(name, bytes)
    else if (this.complaint.length < sandboxLimits.complaintBytesMax) this.complaint += bytes.toString("utf8")
  }

  private listen(): ReadonlyArray<Readable> {
    const { channels } = this.parts
    const named: ReadonlyArray<readonly [OutputStream | number, Readable | null | undefined]> = [
      ["stdout", this.child.stdout],
      ["stderr", this.child.stderr],
      ...channels.flatMap((way, index) =>
        way === "out" ? [[index + 3, this.child.stdio[index + 3] as Readable | null | undefined] as const] : []
      )
    ]
    this.child.stdin?.on("error", swallow)
    return named.flatMap(([name, stream]) => {
      if (stream === null || stream === undefined) return []
      stream.on("data", (bytes: Buffer) => this.hear(name, bytes))
      stream.on("error", swallow)
      return [stream]
    })
  }

  private async untilEnded(): Promise<Exit> {
    const { child } = this
    const closed = new Promise<void>((resolve) => child.once("close", () => resolve()))
    const exit = await new Promise<Exit>((resolve) => {
      child.once("exit", (exit_code, name) => resolve({ exit_code, signal: name }))
    })
    if (!this.parts.command.isNamespace) await this.sweep()
    await Promise.race([closed, sleep(processLimits.drainMsMax, undefined, { ref: false })])
    // Somebody outside the tree was given the other end: what it writes is no output of this program.
    for (const output of this.outputs) output.destroy()
    this.isOver = true
    return exit
  }

  /** Outside a namespace: ends what the first process left behind, as far as it can be found. */
  private async sweep(): Promise<void> {
    for (let round = 0; round < processLimits.sweepsMax; round++) {
      const wasShort = performance.now() - this.startedMs < processLimits.shortMs
      const left = markedWith(this.parts.mark, { from: this.pid, wasShort }).filter(isAlive)
      const name = round === 0 && this.killing === undefined ? "SIGTERM" : "SIGKILL"
      signal(-this.pid, name)
      if (left.length === 0) return
      for (const pid of left) signal(pid, round * processLimits.sweepMs < processLimits.killAfterMs ? name : "SIGKILL")
      await sleep(processLimits.sweepMs)
    }
  }
}
