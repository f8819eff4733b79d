// A process of our own beside the benchmark: for a writer that can be killed, and for a reader whose memory is its
// alone. It says one line when it has something to say; no child outlives the benchmark.
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

const running = new Set<ChildProcess>()
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL")
})

export interface Child {
  /** The first line it printed. */
  readonly line: string
  readonly kill: () => Promise<void>
}

/** Starts a module of this folder; resolves when it has printed a line, rejects when it ends before. */
export const startChild = async (module: string, args: ReadonlyArray<string>): Promise<Child> => {
  const path = fileURLToPath(new URL(module, import.meta.url))
  const child = spawn(process.execPath, [path, ...args], { stdio: ["ignore", "pipe", "inherit"] })
  running.add(child)
  const ended = once(child, "exit").then(() => running.delete(child))
  const line = await Promise.race([
    once(createInterface({ input: child.stdout! }), "line").then(([text]) => String(text)),
    ended.then(() => {
      throw new Error(`${module} ended before it said anything`)
    })
  ])
  return {
    line,
    kill: async () => {
      child.kill("SIGKILL")
      await ended
    }
  }
}
