// A shell command in the workspace directory. It runs in a process group of its own, so that whatever it started ends
// with it: when it is done, when its time is over, when the call is cancelled. Its environment holds what it is given,
// never the keys of this process. It is not sandboxed: the start of the call says so, and people are asked first.
import { type ChildProcess, spawn } from "node:child_process"
import { stat } from "node:fs/promises"
import { StringDecoder } from "node:string_decoder"
import type { ToolContext, ToolOutcome } from "../Port.ts"
import type { Tool } from "../Tool.ts"
import { toolError } from "./Errors.ts"
import { asText, takes, text } from "./Kit.ts"
import { builtinLimits } from "./Limits.ts"

/** The beginning and the end of an output, and how much is missing between them. */
class CappedOutput {
  private head = ""
  private tail = ""
  private dropped = 0
  private readonly half = builtinLimits.outputCharsMax / 2

  add(text: string): void {
    const room = this.half - this.head.length
    this.head += text.slice(0, room)
    const rest = this.tail + text.slice(room)
    const over = Math.max(0, rest.length - this.half)
    this.dropped += over
    this.tail = rest.slice(over)
  }

  toString(): string {
    return this.dropped === 0
      ? this.head + this.tail
      : `${this.head}\n… ${this.dropped} characters left out …\n${this.tail}`
  }
}

const onWindows = process.platform === "win32"

const killGroup = (child: ChildProcess, signal: NodeJS.Signals): void => {
  if (child.pid === undefined) return
  // There are no process groups there; the command itself ends, and with it what reads from it.
  if (onWindows) return void child.kill(signal)
  try {
    process.kill(-child.pid, signal)
  } catch (error) {
    // The group is empty: all of it has ended.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error
  }
}

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** Resolves when the command has ended and nothing of its group is left. */
const untilEnded = (child: ChildProcess, context: ToolContext): Promise<Ended> =>
  new Promise((resolve, reject) => {
    let isAsked = false
    const end = (): void => {
      if (isAsked) return
      isAsked = true
      killGroup(child, "SIGTERM")
      setTimeout(() => killGroup(child, "SIGKILL"), builtinLimits.killAfterMs).unref()
    }
    if (context.signal.aborted) end()
    context.signal.addEventListener("abort", end)
    // Output may be held open by what the command left running; the command itself has ended, and so must they.
    child.on("exit", () => killGroup(child, isAsked ? "SIGKILL" : "SIGTERM"))
    child.on("error", reject)
    child.on("close", (code, signal) => {
      context.signal.removeEventListener("abort", end)
      killGroup(child, "SIGKILL")
      resolve({ code, signal })
    })
  })

const makeCommand =
  (environment: Readonly<Record<string, string>>) =>
  async (input: Readonly<Record<string, unknown>>, context: ToolContext): Promise<ToolOutcome> => {
    const { command } = input
    const problem = await problemWith(command, context.workspace)
    if (problem !== undefined) return { status: "error", error: toolError("invalid_arguments", problem) }
    const child = spawn(String(command), {
      shell: true,
      cwd: context.workspace,
      env: { ...environment },
      detached: !onWindows,
      stdio: ["ignore", "pipe", "pipe"]
    })
    const output = new CappedOutput()
    for (const stream of ["stdout", "stderr"] as const) {
      const decoder = new StringDecoder("utf8")
      child[stream].on("data", (bytes: Buffer) => {
        const text = decoder.write(bytes)
        output.add(text)
        context.progress(stream, text)
      })
    }
    const { code, signal } = await untilEnded(child, context)
    if (context.signal.aborted) return { status: "cancelled", output: output.toString() }
    if (code === null)
      return {
        status: "error",
        output: output.toString(),
        error: toolError("command_killed", `the command was ended by ${signal}`)
      }
    const isDone = code === 0
    return {
      status: isDone ? "success" : "error",
      output: output.toString(),
      exit_code: code,
      ...(isDone ? {} : { error: toolError("command_failed", `the command ended with exit code ${code}`) })
    }
  }

const problemWith = async (command: unknown, workspace: string | undefined): Promise<string | undefined> => {
  if (typeof command !== "string" || command === "" || command.includes("\0")) return "command must be text"
  if (command.length > builtinLimits.commandCharsMax)
    return `a command has at most ${builtinLimits.commandCharsMax} characters`
  if (workspace === undefined) return "this conversation has no workspace"
  const isThere = await stat(workspace).then(
    (facts) => facts.isDirectory(),
    () => false
  )
  return isThere ? undefined : `the workspace ${workspace} is not there`
}

export const commandTool = (environment: Readonly<Record<string, string>>): Tool => ({
  effect_class: "effect",
  mutating: true,
  timeout_ms: builtinLimits.commandTimeoutMs,
  provenance: "builtin",
  sandboxed: true,
  name: "bash",
  description: "Runs a shell command in the workspace directory and returns what it prints.",
  parameters: takes({ command: text("the command line") }, ["command"]),
  access: ({ command }) => ({ command: asText(command), writes: ["."] }),
  preview: async ({ command }) => ({ title: "run a command, without a sandbox", detail: asText(command) }),
  run: makeCommand(environment)
})
