// A server of the demo's own: a real process, started as a person starts it, and killed without warning.
import { type ChildProcessByStdio, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"

export interface ServerProcess {
  readonly url: string
  readonly pid: number
  readonly startedInMs: number
  /** Ends it with the signal and waits until it is gone. */
  readonly end: (signal: NodeJS.Signals) => Promise<void>
}

export interface ServerProcessOptions {
  /** Program and arguments that start this CLI again. */
  readonly command: ReadonlyArray<string>
  readonly dataDirectory: string
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
}

export class ServerFailed extends Error {
  override readonly name = "ServerFailed"
}

const complaintCharsMax = 2_000

/** Nothing of the person's own settings and keys reaches the demo. */
const ownEnvironment = (environment: ServerProcessOptions["environment"]): NodeJS.ProcessEnv => {
  const isForeign = (name: string): boolean => /^(ECHS_|OPENAI_|ANTHROPIC_|OTEL_)/.test(name)
  const kept = Object.entries(environment).filter(([name]) => !isForeign(name))
  return { ...Object.fromEntries(kept), ECHS_MODEL: "scripted/demo", ECHS_LOG: "error" }
}

export const startServerProcess = async (options: ServerProcessOptions): Promise<ServerProcess> => {
  const { command, dataDirectory, environment, signal } = options
  const [program = "", ...args] = command
  const startedMs = performance.now()
  const child = spawn(program, [...args, "serve", "--json", "--port", "0", "--data", dataDirectory], {
    env: ownEnvironment(environment),
    stdio: ["ignore", "pipe", "pipe"]
  })
  const ended = new Promise<void>((resolve) => child.on("exit", () => resolve()).on("error", () => resolve()))
  const kill = (): void => void child.kill("SIGKILL")
  signal.addEventListener("abort", kill)
  void ended.then(() => signal.removeEventListener("abort", kill))
  // One that came too late to be heard.
  if (signal.aborted) kill()
  const { url } = await firstLine(child).catch(async (error: unknown) => {
    kill()
    await ended
    throw error
  })
  return {
    url,
    pid: child.pid ?? 0,
    startedInMs: performance.now() - startedMs,
    end: async (how) => {
      child.kill(how)
      await ended
    }
  }
}

const firstLine = async (child: ChildProcessByStdio<null, Readable, Readable>): Promise<{ readonly url: string }> => {
  let complaints = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints = `${complaints}${text}`.slice(-complaintCharsMax)
  })
  const said = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", resolve)
    child.on("close", (code) =>
      reject(new ServerFailed(`the server ended by itself, code ${code}: ${complaints.trim()}`))
    )
    child.on("error", (error) => reject(new ServerFailed(`the server could not be started: ${error.message}`)))
  })
  try {
    const { url }: { readonly url?: unknown } = JSON.parse(said)
    if (typeof url === "string") return { url }
  } catch {
    // Told below, with what it said instead.
  }
  throw new ServerFailed(`the server said "${said.slice(0, 200)}"`)
}
