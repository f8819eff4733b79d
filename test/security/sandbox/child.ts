// Makes the attempts as whoever runs it, and prints what came of them: one JSON object.
// Arguments: a directory that is its own; the name of a mutant or nothing; the names of attempts, or nothing for all;
// "ahead" when every attempt shall be made in a sandbox that was ready before; "compared" when a mutant is compared with
// its plan, as every sandbox is.
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { detectSandbox } from "../../../src/sandbox/Detect.ts"
import { allowedEnvironment } from "../../../src/sandbox/Environment.ts"
import { ProcessNotStarted } from "../../../src/sandbox/process/ProcessErrors.ts"
import { makeProcesses } from "../../../src/sandbox/process/Processes.ts"
import { attempts, type Scene } from "./attempts.ts"
import { keepsRoot, weakened } from "./mutants.ts"
import { makeScene } from "./scene.ts"

export interface AttemptReport {
  readonly name: string
  /** How it got out; nothing when it was held. */
  readonly escaped?: string
  /** The sandbox was found to be another than planned, and the attempt was not made. */
  readonly violated?: boolean
}

export interface EscapeReport {
  readonly level: string
  readonly detail: string
  readonly uid: number
  /** Attempts that were made in a sandbox that was ready before. */
  readonly ahead: number
  readonly attempts: ReadonlyArray<AttemptReport>
}

const [base = "", mutant = "", only = "", ahead = "", comparison = ""] = process.argv.slice(2)
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
process.env["CANARY"] = "CANARY_VALUE"

mkdirSync(join(base, "home"), { recursive: true })
const sandbox = await detectSandbox({
  dataDirectory: join(base, "data"),
  hidden: [join(base, "named-key")],
  home: join(base, "home"),
  path,
  ...(mutant === keepsRoot ? { levels: ["bubblewrap_as_root"] } : {})
})
const processes = makeProcesses({
  sandbox:
    mutant === "" || mutant === keepsRoot
      ? sandbox
      : weakened(sandbox, mutant, comparison === "compared" ? "compared" : "believed"),
  environment: allowedEnvironment({ ...process.env, PATH: path }),
  overflowDirectory: join(base, "overflow")
})

/** Has a sandbox made ahead for this scene. */
const getReady = async (scene: Scene, environment: Readonly<Record<string, string>> | undefined): Promise<void> => {
  // The one for the scene before, which is no longer there.
  while (processes.spareStats?.making !== 0) await sleep(5)
  await processes.run({ ...requestOf(scene, environment), argv: ["true"] })
  while (processes.spareStats?.making !== 0) await sleep(5)
}

const requestOf = (scene: Scene, environment: Readonly<Record<string, string>> | undefined) => ({
  directory: scene.workspace,
  writable: [scene.workspace],
  network: false,
  ...(environment === undefined ? {} : { environment }),
  outputCharsMax: 4_096,
  timeoutMs: 20_000,
  signal: new AbortController().signal
})

const tryOne = async (attempt: (typeof attempts)[number]): Promise<AttemptReport> => {
  const { clear, scene } = await makeScene(base)
  try {
    const environment = attempt.environment?.(scene)
    if (ahead === "ahead") await getReady(scene, environment)
    const ended = await processes
      .run({ ...requestOf(scene, environment), argv: ["sh", "-c", attempt.script(scene)] })
      .catch((error: unknown) => {
        if (error instanceof ProcessNotStarted && error.code === "sandbox_violation") return undefined
        throw error
      })
    if (ended === undefined) return { name: attempt.name, violated: true }
    const damage = attempt.damage?.(scene)
    const said = ended.stdout.includes("ESCAPED") ? ended.stdout.trim().slice(0, 200) : undefined
    const escaped = said ?? damage ?? (ended.end === "timeout" ? "it did not end" : undefined)
    return { name: attempt.name, ...(escaped === undefined ? {} : { escaped }) }
  } finally {
    clear()
  }
}

const reports: Array<AttemptReport> = []
const chosen = only === "" ? attempts : attempts.filter(({ name }) => only.split("\n").includes(name))
for (const attempt of chosen) reports.push(await tryOne(attempt))
const usedAhead = processes.spareStats?.used ?? 0
await processes.close()
const report: EscapeReport = {
  level: sandbox.level,
  detail: sandbox.detail,
  uid: process.getuid?.() ?? -1,
  ahead: usedAhead,
  attempts: reports
}
process.stdout.write(`${JSON.stringify(report)}\n`)
