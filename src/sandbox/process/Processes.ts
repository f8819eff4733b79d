// Programs in the sandbox, each with its whole tree: bounded in number, in memory and in what they leave on disk. This
// is the only way by which tools start anything.

import { randomBytes } from "node:crypto"
import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { after } from "../../contract/Timers.ts"
import type { SandboxedCommand, SandboxPort } from "../SandboxPort.ts"
import { DiskGuard, type ReserveOf, usualReserve } from "./DiskGuard.ts"
import { HeadTail } from "./HeadTail.ts"
import { Overflow } from "./Overflow.ts"
import { ProcessNotStarted } from "./ProcessErrors.ts"
import { processLimits } from "./ProcessLimits.ts"
import type {
  OutputStream,
  ProcessEnd,
  ProcessEnded,
  ProcessPort,
  ProcessRequest,
  StartRequest
} from "./ProcessPort.ts"
import { Progress } from "./Progress.ts"
import { Reaper } from "./Reaper.ts"
import { type Exit, Running } from "./Running.ts"
import { type Setting, Spares, waiter } from "./Spares.ts"
import { markName, newMark } from "./Tree.ts"

export interface ProcessesOptions {
  readonly sandbox: SandboxPort
  /** All that programs find in their environment, besides what a request adds. */
  readonly environment: Readonly<Record<string, string>>
  /** Where output goes that is too long to stay inline; emptied at the start. */
  readonly overflowDirectory: string
  readonly overflowBytesMax?: number
  /** What the marks of programs begin with, so that the next server finds those that outlived this one. */
  readonly owner?: string
  readonly diskReserve?: ReserveOf
  /** Whether sandboxes are made ahead of the calls that need them; they are, unless told otherwise. */
  readonly spares?: boolean
}

/** What a program printed: inline with a cap, and in a file when that was not all. */
class Output {
  readonly stdout: HeadTail
  readonly stderr: HeadTail
  readonly both: HeadTail
  private readonly bytesMax: number
  private readonly makeOverflow: () => Overflow
  private overflow: Overflow | undefined

  constructor(bytesMax: number, makeOverflow: () => Overflow) {
    this.bytesMax = bytesMax
    this.makeOverflow = makeOverflow
    this.stdout = new HeadTail(bytesMax)
    this.stderr = new HeadTail(bytesMax)
    this.both = new HeadTail(bytesMax)
  }

  /** Whether more may come at once. */
  add(stream: OutputStream, bytes: Buffer): boolean {
    if (this.overflow === undefined && this.both.total + bytes.length > this.bytesMax) {
      this.overflow = this.makeOverflow()
      this.overflow.add(this.both.bytes())
    }
    this[stream].add(bytes)
    this.both.add(bytes)
    return this.overflow?.add(bytes) ?? true
  }

  async end(): Promise<Pick<ProcessEnded, "stdout" | "stderr" | "output" | "overflow">> {
    const overflow = await this.overflow?.close()
    return {
      stdout: this.stdout.toString(),
      stderr: this.stderr.toString(),
      output: this.both.toString(),
      ...(overflow === undefined ? {} : { overflow })
    }
  }
}

/** Why the program never began, when it did not. */
const whyNotBegun = async (running: Running, program: string, exit: Exit): Promise<ProcessNotStarted | undefined> => {
  const answer = await running.entered
  if (answer._tag === "Open") return undefined
  if (answer._tag === "Violated") return new ProcessNotStarted("sandbox_violation", program, answer.reason)
  const reason =
    answer.reason ?? (running.sandboxComplaint || `the sandbox ended with ${exit.exit_code ?? exit.signal}`)
  return new ProcessNotStarted("sandbox_failed", program, reason)
}

const endOf = (exit: Exit, asked: ProcessEnd | undefined): ProcessEnd =>
  asked ?? (exit.exit_code === null ? "killed" : "exited")

class Processes implements ProcessPort {
  private readonly options: ProcessesOptions
  private readonly running = new Set<Running>()
  private readonly guard: DiskGuard
  private readonly starting = new Set<Promise<Running>>()
  private readonly reaper = new Reaper()
  private readonly spares: Spares | undefined
  private readonly closing = new AbortController()

  constructor(options: ProcessesOptions) {
    this.options = options
    const isWorthIt = options.sandbox.level.startsWith("bubblewrap") && options.spares !== false
    this.spares = isWorthIt
      ? new Spares((setting) => this.prepareSpare(setting), {
          newMark: () => newMark(options.owner),
          reaper: this.reaper
        })
      : undefined
    this.guard = new DiskGuard(options.diskReserve ?? usualReserve)
    rmSync(options.overflowDirectory, { recursive: true, force: true })
    mkdirSync(options.overflowDirectory, { recursive: true, mode: 0o700 })
  }

  async start(request: StartRequest): Promise<Running> {
    const running = await this.open(request, { hasInput: true })
    if ((await running.entered)._tag !== "Open") {
      const notStarted = await whyNotBegun(running, request.argv[0] ?? "", await running.ended)
      if (notStarted !== undefined) throw notStarted
    }
    const unwatch = this.guard.watch(request.writable, () => void running.kill())
    void running.ended.then(unwatch)
    return running
  }

  async run(request: ProcessRequest): Promise<ProcessEnded> {
    try {
      return await this.runOnce(request)
    } catch (error) {
      // What the sandbox was to hide may be gone by the time it is made; the program itself has not run.
      const isOutdated = error instanceof ProcessNotStarted && error.code === "sandbox_failed"
      if (!isOutdated || request.signal.aborted || this.closing.signal.aborted) throw error
      return this.runOnce(request)
    }
  }

  private async runOnce(request: ProcessRequest): Promise<ProcessEnded> {
    const program = request.argv[0] ?? ""
    if (Buffer.byteLength(request.stdin ?? "") > processLimits.stdinBytesMax)
      throw new ProcessNotStarted("too_large", program, `its input has more than ${processLimits.stdinBytesMax} bytes`)
    if (request.signal.aborted) return this.neverStarted()
    const progress = request.onOutput === undefined ? undefined : new Progress(request.onOutput)
    const output = new Output(request.outputCharsMax, () => this.newOverflow(() => running.resume()))
    const onOutput = (stream: OutputStream | number, bytes: Buffer): void => {
      if (typeof stream === "number") return
      progress?.add(stream, bytes)
      if (!output.add(stream, bytes)) running.pause()
    }
    const running = await this.begin({ ...request, onOutput })
    if (request.stdin === undefined) running.endInput()
    else void running.write(request.stdin).then(() => running.endInput())
    const { asked, exit } = await this.untilOver(running, request)
    void this.spares?.make(request)
    progress?.flush()
    const printed = await output.end()
    const notStarted = asked === undefined ? await whyNotBegun(running, program, exit) : undefined
    if (notStarted !== undefined) throw notStarted
    return { end: endOf(exit, asked), ...exit, aborted: asked === "aborted", ...printed }
  }

  /** How often a sandbox was ready. */
  get spareStats(): Spares["stats"] | undefined {
    return this.spares?.stats
  }

  async close(): Promise<void> {
    // Whoever waits for a program hears that it was cancelled, not that it failed.
    this.closing.abort()
    await this.spares?.close()
    // What begins at this moment is not among those that run yet.
    await Promise.allSettled([...this.starting])
    await Promise.all([...this.running].map((running) => running.kill()))
    this.reaper.close()
  }

  /** In a sandbox that is ready, or in a new one. */
  private async begin(request: StartRequest & Pick<ProcessRequest, "stdin">): Promise<Running> {
    this.checkRoom(request.argv[0] ?? "")
    // A text that holds what ends an argument is refused where new ones are made.
    const isPlain = request.argv.length > 0 && !request.argv.some((argument) => argument.includes("\0"))
    const ready = isPlain ? this.spares?.take(request, request.argv, request.onOutput) : undefined
    if (ready === undefined) return this.open(request, { hasInput: request.stdin !== undefined })
    this.keep(ready)
    return ready
  }

  private checkRoom(program: string): void {
    if (this.closing.signal.aborted) throw new ProcessNotStarted("closed", program, "the server is ending")
    if (this.running.size + this.starting.size >= processLimits.runningMax)
      throw new ProcessNotStarted("too_many", program, `${processLimits.runningMax} programs run already`)
  }

  private keep(running: Running): void {
    this.running.add(running)
    void running.ended.then(() => this.running.delete(running))
  }

  private prepareSpare(setting: Setting): SandboxedCommand {
    const { directory, environment, gitAlone = false, network, readable = [], writable } = setting
    const { environment: allowed, sandbox } = this.options
    return sandbox.prepare({
      argv: waiter,
      directory,
      writable,
      readable,
      network,
      gitAlone,
      environment: { ...allowed, ...environment },
      firstDescriptor: 4
    })
  }

  private async open(request: StartRequest, { hasInput }: { readonly hasInput: boolean }): Promise<Running> {
    this.checkRoom(request.argv[0] ?? "")
    const { argv, channels = [], directory, gitAlone = false, network, readable = [], writable } = request
    const mark = newMark(this.options.owner)
    const { environment: allowed, sandbox } = this.options
    const command = sandbox.prepare({
      argv,
      directory,
      writable,
      readable,
      network,
      gitAlone,
      environment: { ...allowed, ...request.environment, [markName]: mark },
      firstDescriptor: 3 + channels.length
    })
    const starting = Running.start({
      command,
      mark,
      channels,
      hasInput,
      onOutput: request.onOutput,
      reaper: this.reaper
    })
    this.starting.add(starting)
    try {
      const running = await starting
      this.keep(running)
      return running
    } finally {
      this.starting.delete(starting)
    }
  }

  /** Waits for the end, or brings it about for the first reason there is. */
  private async untilOver(running: Running, request: ProcessRequest) {
    let asked: ProcessEnd | undefined
    const end = (reason: ProcessEnd): void => {
      if (asked !== undefined) return
      asked = reason
      // Nobody waits for room any more; what is in the pipes is read to their end.
      running.resume()
      void running.kill()
    }
    const onAbort = (): void => end("aborted")
    const signals = [request.signal, this.closing.signal]
    if (signals.some(({ aborted }) => aborted)) onAbort()
    for (const signal of signals) signal.addEventListener("abort", onAbort)
    const { timeoutMs } = request
    const cancel = timeoutMs === undefined ? undefined : after(timeoutMs, () => end("timeout"))
    const unwatch = this.guard.watch([...request.writable, this.options.overflowDirectory], () => end("disk_reserve"))
    const exit = await running.ended
    unwatch()
    cancel?.()
    for (const signal of signals) signal.removeEventListener("abort", onAbort)
    return { exit, asked }
  }

  private newOverflow(onRoom: () => void): Overflow {
    return new Overflow({
      path: join(this.options.overflowDirectory, `${randomBytes(12).toString("hex")}.out`),
      bytesMax: this.options.overflowBytesMax ?? processLimits.overflowBytesMax,
      pendingBytesMax: processLimits.overflowPendingBytesMax,
      onRoom
    })
  }

  private neverStarted(): ProcessEnded {
    return { end: "aborted", exit_code: null, signal: null, aborted: true, stdout: "", stderr: "", output: "" }
  }
}

export const makeProcesses = (
  options: ProcessesOptions
): ProcessPort & { readonly spareStats: Spares["stats"] | undefined } => new Processes(options)
