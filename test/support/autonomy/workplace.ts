// A workspace on a real disk, the file tools that the scripted goals use, and a runner of real programs in it.
import { execFileSync, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach } from "vitest"
import type { Place } from "#src/autonomy/evidence/Place.ts"
import type { Runner, RunnerRuling } from "#src/autonomy/GoalContext.ts"
import { commandRuling } from "#src/policy/CommandRules.ts"
import type { ProcessEnded, ProcessRequest } from "#src/sandbox/process/ProcessPort.ts"
import { effectTool, tool } from "../runtime/tools.ts"
import type { FunctionTool } from "../tool/FunctionTools.ts"

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

const pathOf = (workspace: string | undefined, input: Readonly<Record<string, unknown>>): string =>
  join(workspace ?? "", String(input["path"]))

/** Reads and writes for real, in the workspace of the agent that calls. */
export const fileTools: ReadonlyArray<FunctionTool> = [
  tool("list_files", async (input, { workspace }) => readdirSync(pathOf(workspace, input)).join("\n")),
  tool("read_file", async (input, { workspace }) => {
    try {
      return readFileSync(pathOf(workspace, input), "utf8")
    } catch (error) {
      return { status: "error", error: { code: "file_error", message: String(error) } }
    }
  }),
  effectTool(
    "write_file",
    async (input, { workspace }) => {
      const path = pathOf(workspace, input)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, String(input["content"]))
      return "written"
    },
    { effect_class: "idempotent" }
  )
]

/** Makes a git repository of a directory, with these files committed. */
export const gitWorkspace = (directory: string, files: Readonly<Record<string, string>>): string => {
  const git = (...args: ReadonlyArray<string>) => execFileSync("git", ["-C", directory, ...args], { stdio: "pipe" })
  mkdirSync(directory, { recursive: true })
  git("init", "-q")
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  git("add", "-A")
  git("-c", "user.name=ada", "-c", "user.email=ada@localhost", "commit", "-q", "-m", "begin")
  return directory
}

/** A place to check in, with nothing known about what was before. */
export const placeIn = (directory: string): Omit<Place, "state"> => ({
  agentId: null,
  workspace: directory,
  directory,
  tree: undefined,
  changes: async () => undefined,
  baseline: () => undefined,
  signal: new AbortController().signal
})

/** Temporary directories that are gone after each test. */
export const useWorkspaces = (): { readonly make: () => string } => {
  const made: Array<string> = []
  afterEach(() => {
    for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true })
  })
  return {
    make: () => {
      const directory = mkdtempSync(join(tmpdir(), "echs-workspace-"))
      made.push(directory)
      return directory
    }
  }
}
