// The command as people run it: a process with its arguments, its data directory and nothing of this machine's settings.
import { spawn, spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"

export const launcher = fileURLToPath(new URL("../../src/cli/echs.js", import.meta.url))

export interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const cleanEnvironment = (data: string): NodeJS.ProcessEnv => ({
  PATH: process.env["PATH"],
  HOME: process.env["HOME"],
  ECHS_DATA: data
})

/** `echs …` on this data directory. */
export const commandOn =
  (data: string, options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {}) =>
  (args: ReadonlyArray<string>, input?: string): CommandResult => {
    const run = spawnSync(process.execPath, [launcher, ...args], {
      encoding: "utf8",
      env: { ...cleanEnvironment(data), ...options.env },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(input === undefined ? { stdio: ["ignore", "pipe", "pipe"] } : { input })
    })
    return { code: run.status, stdout: run.stdout, stderr: run.stderr }
  }

/** The same, still running. */
export const startCommand = (data: string, args: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [launcher, ...args], {
    env: cleanEnvironment(data),
    stdio: ["ignore", "pipe", "pipe"]
  })
  let stdout = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text
  })
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.on("close", (code, signal) => resolve(code ?? signal))
  )
  return { child, ended, stdout: () => stdout }
}
