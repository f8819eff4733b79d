// What is compared: a bare spawn, as anybody would write it, and calls of the tool `bash`, without a sandbox and with
// one. Each starts bash, which does nothing, and collects its output.
import { spawn } from "node:child_process"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { detectSandbox } from "../../../src/sandbox/Detect.ts"
import { allowedEnvironment } from "../../../src/sandbox/Environment.ts"
import { makeProcesses } from "../../../src/sandbox/process/Processes.ts"
import type { SandboxLevel } from "../../../src/sandbox/SandboxPort.ts"
import { makeBash } from "../../../src/tool/builtin/shell/Bash.ts"
import type { ToolContext } from "../../../src/tool/ToolPort.ts"

export interface Subject {
  readonly name: string
  /** Runs a command to its end; rejects when it does not end well. */
  readonly run: (command: string) => Promise<void>
  readonly close: () => Promise<void>
}

const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

export const bareSpawn = (directory: string): Subject => ({
  name: "bare spawn",
  run: (command) =>
    new Promise((resolve, reject) => {
      const child = spawn("bash", ["--noprofile", "--norc", "-c", command], { cwd: directory, env: { PATH: path } })
      child.stdin.end()
      for (const stream of [child.stdout, child.stderr]) stream.resume()
      child.on("error", reject)
      child.on("close", (code) => (code === 0 ? resolve() : reject(new Error(`it ended with ${code}`))))
    }),
  close: async () => undefined
})

/** The tool on the best level there is, or on the one named; with sandboxes made ahead, or without. */
export const toolCalls = async (
  base: string,
  {
    levels,
    name,
    spares = true
  }: { readonly name: string; readonly levels?: ReadonlyArray<SandboxLevel>; readonly spares?: boolean }
): Promise<Subject> => {
  const [workspace, data, home] = [join(base, name, "workspace"), join(base, name, "data"), join(base, name, "home")]
  for (const directory of [workspace, data, home]) mkdirSync(directory, { recursive: true })
  const sandbox = await detectSandbox({ dataDirectory: data, home, path, ...(levels === undefined ? {} : { levels }) })
  const processes = makeProcesses({
    sandbox,
    spares,
    environment: allowedEnvironment({ PATH: path, HOME: home }),
    overflowDirectory: join(base, name, "overflow")
  })
  const { close, tool } = makeBash({ processes })
  const context = { conversation_id: "c", agent_id: "a", workspace, progress: () => undefined }
  return {
    name: `tool call, ${sandbox.level}${spares ? "" : ", none made ahead"}`,
    run: async (command) => {
      const { error, status } = await Effect.runPromise(
        tool.run({ command, timeout_ms: 600_000 }, context as unknown as ToolContext)
      )
      if (status !== "success") throw new Error(`${status}: ${error?.message ?? ""}`)
    },
    close: async () => {
      await Effect.runPromise(close)
      await processes.close()
    }
  }
}
