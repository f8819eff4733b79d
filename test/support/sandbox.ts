// Bubblewrap as a part that tests need, and what those tests have in common: a place, a sandbox, processes in it.
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { detectSandbox } from "#src/sandbox/Detect.ts"
import { allowedEnvironment } from "#src/sandbox/Environment.ts"
import { makeProcesses, type ProcessesOptions } from "#src/sandbox/process/Processes.ts"
import type { ProcessEnded, ProcessRequest } from "#src/sandbox/process/ProcessPort.ts"
import type { SandboxLevel, SandboxPort } from "#src/sandbox/SandboxPort.ts"
import { type Part, programRuns } from "./require.ts"

export const bubblewrap: Part = {
  name: "bubblewrap",
  isThere: () => programRuns("bwrap", ["--unshare-all", "--ro-bind", "/", "/", "true"]),
  remedy: "apt-get install bubblewrap, on a system that allows user namespaces"
}

export const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

export interface Ground {
  readonly base: string
  readonly workspace: string
  readonly data: string
  readonly sandbox: SandboxPort
  readonly processes: ReturnType<typeof makeProcesses>
  readonly run: (script: string, more?: Partial<ProcessRequest>) => Promise<ProcessEnded>
  readonly clear: () => Promise<void>
}

export const makeGround = async (
  options: { readonly levels?: ReadonlyArray<SandboxLevel> } & Partial<Omit<ProcessesOptions, "sandbox">> = {}
): Promise<Ground> => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "echs-ground-")))
  const [workspace, data, home] = [join(base, "workspace"), join(base, "data"), join(base, "home")]
  for (const directory of [workspace, data, home]) mkdirSync(directory)
  const { levels, ...others } = options
  const sandbox = await detectSandbox({
    dataDirectory: data,
    home,
    path: usualPath,
    ...(levels === undefined ? {} : { levels })
  })
  const environment = allowedEnvironment({ PATH: usualPath, HOME: home, LANG: "C.UTF-8" })
  const processes = makeProcesses({ sandbox, environment, overflowDirectory: join(base, "overflow"), ...others })
  const run: Ground["run"] = (script, more = {}) =>
    processes.run({
      argv: ["bash", "--norc", "-c", script],
      directory: workspace,
      writable: [workspace],
      network: false,
      outputCharsMax: 16_384,
      signal: new AbortController().signal,
      timeoutMs: 30_000,
      ...more
    })
  const clear = async (): Promise<void> => {
    await processes.close()
    rmSync(base, { recursive: true, force: true })
  }
  return { base, workspace, data, sandbox, processes, run, clear }
}
