// A runner of real programs for goals, without a sandbox.
import { spawn } from "node:child_process"
import type { Runner, RunnerRuling } from "#src/autonomy/GoalContext.ts"
import { commandRuling } from "#src/policy/CommandRules.ts"
import type { ProcessEnded, ProcessRequest } from "#src/sandbox/process/ProcessPort.ts"

/** Runs programs without a sandbox and says that something holds them: tests choose their own commands. */
export class TestRunner implements Runner {
  readonly contained: boolean
  readonly commands: Array<string> = []
  /** Of the policy. */
  rules: ReadonlyArray<unknown> = []

  constructor(options: { readonly contained: boolean } = { contained: true }) {
    this.contained = options.contained
  }

  ruling: Runner["ruling"] = (state, _agentId, argv): RunnerRuling =>
    commandRuling(argv, {
      ...{ rules: this.rules, workspace: undefined, nowMs: state.last_ms, contained: this.contained },
      mode: state.session.config.policy?.mode ?? "full_access",
      grants: state.grants
    })

  run(request: ProcessRequest): Promise<ProcessEnded> {
    this.commands.push(request.argv.join(" "))
    const [file = "", ...args] = request.argv
    return new Promise((resolve, reject) => {
      const env = { PATH: process.env["PATH"], ...request.environment }
      const child = spawn(file, args, { cwd: request.directory, env, signal: request.signal })
      let stdout = ""
      let stderr = ""
      child.stdout.on("data", (bytes: Buffer) => {
        stdout += bytes.toString()
      })
      child.stderr.on("data", (bytes: Buffer) => {
        stderr += bytes.toString()
      })
      // A program that reads nothing may be gone before the end of its input is.
      child.stdin.on("error", () => undefined)
      child.stdin.end(request.stdin ?? "")
      child.on("error", reject)
      child.on("close", (code, signal) =>
        resolve({
          end: code === null ? "killed" : "exited",
          exit_code: code,
          signal,
          aborted: request.signal.aborted,
          stdout,
          stderr,
          output: stdout + stderr
        })
      )
    })
  }
}
