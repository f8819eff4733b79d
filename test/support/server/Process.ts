// A server in a process of its own, started as a person starts it, that a test can stop or kill.
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"

const launcher = join(import.meta.dirname, "..", "..", "..", "src", "cli", "echs.js")

export interface ServerProcess {
  readonly url: string
  readonly token: string
  readonly child: ChildProcess
  /** What it said on standard error so far. */
  readonly errors: () => string
  /** Ends it with the signal; resolves with its exit code, or with the signal that ended it. */
  readonly end: (signal: NodeJS.Signals) => Promise<number | NodeJS.Signals | null>
}

const running = new Set<ChildProcess>()
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL")
})

export const startProcess = async (
  dataDirectory: string,
  options: {
    readonly port?: number
    readonly args?: ReadonlyArray<string>
    readonly env?: NodeJS.ProcessEnv
    /** Descriptors the process may have. */
    readonly descriptors?: number
  } = {}
): Promise<ServerProcess> => {
  const args = [
    "serve",
    "--json",
    "--data",
    dataDirectory,
    "--port",
    String(options.port ?? 0),
    ...(options.args ?? [])
  ]
  const env = { ...process.env, ECHS_MODEL: "scripted/echo", ECHS_SCENARIOS: tmpdir(), ...options.env }
  const { descriptors } = options
  const limited = ["-c", `ulimit -n ${descriptors}; exec "$0" "$@"`, process.execPath, launcher, ...args]
  const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"]
  const child =
    descriptors === undefined
      ? spawn(process.execPath, [launcher, ...args], { env, stdio })
      : spawn("bash", limited, { env, stdio })
  running.add(child)
  let errors = ""
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    errors += text
  })
  const ended = once(child, "exit").then(([code, signal]) => {
    running.delete(child)
    return (code ?? signal) as number | NodeJS.Signals | null
  })
  const line = await Promise.race([
    once(createInterface({ input: child.stdout! }), "line").then(([text]) => String(text)),
    ended.then((code) => {
      throw new Error(`the server ended with ${code} before it listened: ${errors}`)
    })
  ])
  const { url } = JSON.parse(line) as { readonly url: string }
  return {
    url,
    token: readFileSync(join(dataDirectory, "token"), "utf8").trim(),
    child,
    errors: () => errors,
    end: (signal) => {
      child.kill(signal)
      return ended
    }
  }
}
