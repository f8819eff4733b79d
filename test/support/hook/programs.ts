// A runner of programs for tests of hooks: no sandbox, no limits, an environment of PATH alone. What runs programs in
// the product has tests of its own.
import { spawn } from "node:child_process"
import type { ProgramEnded, ProgramPort } from "#src/hook/Program.ts"

export interface Ran {
  readonly argv: ReadonlyArray<string>
  readonly directory: string
  readonly network: boolean
  readonly environment: Readonly<Record<string, string>>
  readonly stdin: string
}

export const makePrograms = (): ProgramPort & { readonly ran: Array<Ran> } => {
  const ran: Array<Ran> = []
  return {
    ran,
    run: (request) =>
      new Promise<ProgramEnded>((resolve, reject) => {
        const { argv, directory, environment, network, signal, stdin } = request
        ran.push({ argv, directory, environment, network, stdin })
        const [file = "", ...args] = argv
        const env = { PATH: process.env["PATH"] ?? "", ...environment }
        const child = spawn(file, args, { cwd: directory, env, detached: true, stdio: ["pipe", "pipe", "pipe"] })
        let stdout = ""
        let stderr = ""
        let output = ""
        child.stdout.on("data", (bytes: Buffer) => {
          stdout += bytes
          output += bytes
        })
        child.stderr.on("data", (bytes: Buffer) => {
          stderr += bytes
          output += bytes
        })
        child.stdin.on("error", () => undefined)
        child.stdin.end(stdin)
        const kill = (): void => {
          if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL")
        }
        signal.addEventListener("abort", kill)
        child.on("error", reject)
        child.on("close", (code, signalName) => {
          signal.removeEventListener("abort", kill)
          resolve({ exit_code: code, signal: signalName, aborted: signal.aborted, stdout, stderr, output })
        })
      })
  }
}
