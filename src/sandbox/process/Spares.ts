// Sandboxes made before they are asked for. Making one takes several times as long as starting a program; a model
// thinks between two calls, and that is when the next one is made. A spare is used only while it is exactly what would
// be made now: the same arguments, and the same files behind every path that it mounts.
import { after, type Cancel } from "../../contract/Timers.ts"
import type { SandboxedCommand } from "../SandboxPort.ts"
import { processLimits } from "./ProcessLimits.ts"
import type { OutputStream, ProcessRequest } from "./ProcessPort.ts"
import type { Reaper } from "./Reaper.ts"
import { Running } from "./Running.ts"

/** What decides how a sandbox is made; the program itself comes later. */
export type Setting = Pick<
  ProcessRequest,
  "directory" | "writable" | "readable" | "network" | "gitAlone" | "environment"
>

type Sink = (stream: OutputStream | number, bytes: Buffer) => void

export interface SpareParts {
  readonly newMark: () => string
  readonly reaper: Reaper
}

interface Spare {
  readonly running: Running
  readonly command: SandboxedCommand
  readonly cancelIdle: Cancel
  /** Sends its output there from now on. */
  readonly direct: (sink: Sink) => void
}

/** Says on descriptor 3 that it is there, and waits for the program it shall become: arguments, each ended by a NUL. */
export const waiter: ReadonlyArray<string> = [
  ...["bash", "--noprofile", "--norc", "-c"],
  `printf r >&3; mapfile -d '' -u 3 echs_argv; exec 3<&-; exec "\${echs_argv[@]}"`
]

const keyOf = ({ directory, environment, gitAlone, network, readable, writable }: Setting): string =>
  JSON.stringify([directory, writable, readable ?? [], network, gitAlone === true, environment ?? {}])

const isSame = (one: SandboxedCommand, other: SandboxedCommand): boolean =>
  one.file === other.file &&
  one.files === other.files &&
  one.args.length === other.args.length &&
  one.args.every((argument, index) => argument === other.args[index]) &&
  one.descriptors.every((bytes, index) => Buffer.from(bytes).equals(other.descriptors[index] ?? new Uint8Array()))

export class Spares {
  private used = 0
  private missed = 0
  private made = 0
  private readonly prepare: (setting: Setting) => SandboxedCommand
  private readonly spares = new Map<string, Spare>()
  private readonly making = new Set<string>()
  private isClosed = false

  private readonly parts: SpareParts

  constructor(prepare: (setting: Setting) => SandboxedCommand, parts: SpareParts) {
    this.prepare = prepare
    this.parts = parts
  }

  /** How often a call found one, how often it did not, how many were made, are being made, and wait. */
  get stats(): Readonly<Record<"used" | "missed" | "made" | "making" | "ready", number>> {
    const { made, making, missed, spares, used } = this
    return { used, missed, made, making: making.size, ready: spares.size }
  }

  /** A spare that becomes this program, with its output going to the sink; undefined when there is none that fits. */
  take(setting: Setting, argv: ReadonlyArray<string>, sink: Sink): Running | undefined {
    const key = keyOf(setting)
    const spare = this.spares.get(key)
    if (spare === undefined || !this.fits(spare, setting)) {
      this.missed += 1
      this.drop(key)
      return undefined
    }
    this.used += 1
    this.spares.delete(key)
    spare.cancelIdle()
    spare.direct(sink)
    spare.running.hold({ isHeld: true })
    spare.running.send(`${argv.join("\0")}\0`, 3)
    return spare.running
  }

  /** Makes one for the next call of this kind, unless there is one. */
  async make(setting: Setting): Promise<void> {
    const key = keyOf(setting)
    if (this.isClosed || this.spares.has(key) || this.making.has(key)) return
    this.making.add(key)
    try {
      const spare = await this.begin(setting, key)
      if (this.isClosed) return void (await spare.running.kill())
      this.spares.set(key, spare)
      this.made += 1
      for (const oldest of this.spares.keys()) if (this.spares.size > processLimits.sparesMax) this.drop(oldest)
    } catch {
      // The next call makes its own, and tells what is wrong.
    } finally {
      this.making.delete(key)
    }
  }

  async close(): Promise<void> {
    this.isClosed = true
    const all = [...this.spares.values()]
    for (const key of [...this.spares.keys()]) this.drop(key)
    await Promise.all(all.map(({ running }) => running.ended))
  }

  private async begin(setting: Setting, key: string): Promise<Spare> {
    const command = this.prepare(setting)
    if (!command.isNamespace) throw new TypeError("only a namespace is worth keeping")
    let sink: Sink = () => undefined
    const running = await Running.start({
      command,
      mark: this.parts.newMark(),
      reaper: this.parts.reaper,
      channels: ["out"],
      hasInput: true,
      onOutput: (stream, bytes) => sink(stream, bytes)
    })
    await new Promise<void>((resolve, reject) => {
      sink = (stream) => (stream === 3 ? resolve() : undefined)
      void running.ended.then(() => reject(new TypeError("the sandbox was not made")))
    })
    running.hold({ isHeld: false })
    const cancelIdle = after(processLimits.spareIdleMs, () => this.drop(key))
    const direct = (to: Sink): void => {
      sink = to
    }
    const spare: Spare = { running, command, cancelIdle, direct }
    void running.ended.then(() => {
      if (this.spares.get(key) === spare) this.drop(key)
    })
    return spare
  }

  private fits(spare: Spare, setting: Setting): boolean {
    const { command, running } = spare
    if (running.isEnded || !isSame(command, this.prepare(setting))) return false
    // What was mounted may have been moved since, by those who share the workspace.
    return command.gate?.difference(running.pid) === undefined
  }

  private drop(key: string): void {
    const spare = this.spares.get(key)
    if (spare === undefined) return
    this.spares.delete(key)
    spare.cancelIdle()
    // Whoever waits for its end must not end before.
    spare.running.hold({ isHeld: true })
    void spare.running.kill()
  }
}
