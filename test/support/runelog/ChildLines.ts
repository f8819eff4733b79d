// A child process of the tests that speaks in lines. The last line counts only if it is whole: a process that was killed
// in the middle of a word has not said it.
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export interface ChildOptions {
  readonly program?: string
  readonly programArgs?: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
}

/** A run that is given up must leave nothing behind. */
const running = new Set<ChildProcess>()
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL")
})

const pathOf = (script: string): string => fileURLToPath(new URL(script, import.meta.url))

let compileCache: string | undefined
const warm = new Set<string>()

/**
 * Environment for a script that is started many times: what was compiled once is kept, which makes a start six times
 * as fast. Only a process that ends by itself fills the cache, so the script is run once with nothing to read.
 */
const cachedEnvironment = (script: string): NodeJS.ProcessEnv => {
  if (compileCache === undefined) {
    const directory = mkdtempSync(join(tmpdir(), "echs-compiled-"))
    compileCache = directory
    process.once("exit", () => rmSync(directory, { recursive: true, force: true }))
  }
  // NODE_OPTIONS of the test runner must not reach it.
  const env = { ...process.env, NODE_OPTIONS: "", NODE_COMPILE_CACHE: compileCache }
  if (!warm.has(script)) spawnSync(process.execPath, [pathOf(script)], { env, input: "" })
  warm.add(script)
  return env
}

export class ChildLines {
  readonly process: ChildProcess
  readonly lines: Array<string> = []
  readonly #ended: Promise<void>
  #rest = ""
  #waiters: Array<{ readonly isMet: () => boolean; readonly resolve: () => void }> = []
  #isOver = false
  errors = ""

  /** Runs a TypeScript file of this folder with the Node of the tests, under another program if one is given. */
  constructor(script: string, args: ReadonlyArray<string>, options: ChildOptions = {}) {
    // Older Nodes warn about what they run on; what a child says on standard error must mean something.
    const node = [process.execPath, "--disable-warning=ExperimentalWarning", pathOf(script), ...args]
    const [command, ...rest] =
      options.program === undefined ? node : [options.program, ...(options.programArgs ?? []), ...node]
    const env = { ...cachedEnvironment(script), ...options.env }
    this.process = spawn(command!, rest, { stdio: ["pipe", "pipe", "pipe"], env })
    running.add(this.process)
    this.process.stdin!.on("error", () => {})
    this.process.stdout!.setEncoding("utf8").on("data", (text: string) => this.#hear(text))
    this.process.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.errors += text
    })
    this.#ended = once(this.process, "close").then(() => {
      running.delete(this.process)
      this.#isOver = true
      this.#tell()
    })
  }

  #hear(text: string): void {
    const parts = (this.#rest + text).split("\n")
    this.#rest = parts.pop()!
    this.lines.push(...parts)
    this.#tell()
  }

  #tell(): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) {
      if (this.#isOver || waiter.isMet()) waiter.resolve()
      else this.#waiters.push(waiter)
    }
  }

  say(line: string): void {
    this.process.stdin!.write(`${line}\n`)
  }

  /** Resolves when so many lines were said, or the process ended. */
  async heard(count: number): Promise<void> {
    if (this.#isOver || this.lines.length >= count) return
    await new Promise<void>((resolve) => this.#waiters.push({ isMet: () => this.lines.length >= count, resolve }))
  }

  /** Resolves when the process ended and all it said was heard. */
  async ended(): Promise<void> {
    await this.#ended
  }

  async kill(): Promise<void> {
    this.process.kill("SIGKILL")
    await this.#ended
  }
}
