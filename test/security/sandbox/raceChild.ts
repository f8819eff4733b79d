// Races for the names that a sandbox protects, as whoever runs it: one command stays and exchanges a name with a link,
// without end, while others begin in the same workspace. Prints what came of it: one JSON object.
// Arguments: a directory that is its own; how many calls for each name; "names" for a launcher that goes by them.
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { detectSandbox } from "../../../src/sandbox/Detect.ts"
import { allowedEnvironment } from "../../../src/sandbox/Environment.ts"
import { ProcessNotStarted } from "../../../src/sandbox/process/ProcessErrors.ts"
import { makeProcesses } from "../../../src/sandbox/process/Processes.ts"
import type { RunningProcess } from "../../../src/sandbox/process/ProcessPort.ts"
import { SandboxRefused } from "../../../src/sandbox/SandboxErrors.ts"
import { goingByNames } from "./mutants.ts"
import { type Racer, racers } from "./racers.ts"

export interface RaceReport {
  readonly level: string
  readonly uid: number
  readonly names: number
  readonly calls: number
  /** Calls whose program ran, whose request was refused, and whose sandbox was found to be another than planned. */
  readonly ran: number
  readonly refused: number
  readonly violated: number
  readonly failed: number
  /** Calls in a sandbox that was made ahead. */
  readonly ahead: number
  readonly escapes: ReadonlyArray<string>
}

const [base = "", callsText = "", mutant = ""] = process.argv.slice(2)
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
const secret = "THE-SECRET"
const [data, home, outside] = [join(base, "data"), join(base, "home"), join(base, "outside")]
for (const directory of [data, join(home, ".ssh"), outside]) mkdirSync(directory, { recursive: true })
for (const file of [join(data, "token"), join(home, ".ssh", "id_rsa"), join(outside, "file")])
  writeFileSync(file, `${secret}\n`)
for (const directory of [data, home, join(home, ".ssh"), outside]) chmodSync(directory, 0o777)

/** All that lies outside, and how it is: whatever changes there was changed by a command. */
const picture = (): string =>
  [data, home, join(home, ".ssh"), outside]
    .flatMap((directory) =>
      readdirSync(directory).map((name) => {
        const facts = statSync(join(directory, name))
        return `${directory}/${name} ${facts.size} ${facts.mode} ${facts.uid}`
      })
    )
    .join("\n")

const renameNumber = process.arch === "arm64" ? 276 : 316

/** Lays out a repository, and swaps one of its names for a link from then on. The two never have the same content. */
const racerScript = (name: string, target: string, restMs: number): string => `
for d in .git/hooks .git/objects .git/refs .git/worktrees/side .git/modules/part/hooks sub/inner; do mkdir -p $d; done
for g in .git .git/modules/part; do echo "[core]" >$g/config; echo . >$g/commondir; : >$g/config.worktree; echo "ref: refs/heads/main" >$g/HEAD; done
echo ../.. >.git/worktrees/side/commondir; : >.git/worktrees/side/config.worktree
ln -s ${target} swap; ln -s ${target} ready.link
perl -e '$| = 1; my ($a, $b) = ("${name}", "swap"); print "ready\\n"; for (;;) { syscall(${renameNumber}, -100, $a, -100, $b, 2); select(undef, undef, undef, rand(${restMs}) / 1000) if ${restMs} && !-l $a }'`

/** Reads and writes whatever the name leads to. */
const probeScript = (names: ReadonlyArray<string>): string =>
  `for n in ${names.join(" ")}; do cat $n $n/* $n/inner/*; echo x >>$n; echo x >$n/made; echo x >$n/file; rm -f $n/id_rsa; chmod 700 $n; done 2>/dev/null; true`

const sandbox = await detectSandbox({ dataDirectory: data, home, path })
const processes = makeProcesses({
  sandbox: mutant === "names" ? goingByNames(sandbox) : sandbox,
  environment: allowedEnvironment({ PATH: path, HOME: home }),
  overflowDirectory: join(base, "overflow")
})

const counts = { calls: 0, ran: 0, refused: 0, violated: 0, failed: 0 }
const escapes: Array<string> = []

const startRacer = async (workspace: string, { name, target }: Racer, restMs: number): Promise<RunningProcess> => {
  const { promise: ready, resolve } = Promise.withResolvers<void>()
  const running = await processes.start({
    argv: ["bash", "--norc", "-c", racerScript(name, target, restMs)],
    directory: workspace,
    writable: [workspace],
    network: false,
    onOutput: (_, bytes) => (bytes.includes("ready") ? resolve() : undefined)
  })
  await Promise.race([ready, running.ended])
  return running
}

const count = (error: unknown): void => {
  if (error instanceof SandboxRefused) counts.refused += 1
  else if (error instanceof ProcessNotStarted && error.code === "sandbox_violation") counts.violated += 1
  else if (error instanceof ProcessNotStarted && error.code === "sandbox_failed") counts.failed += 1
  else throw error
}

/** One that never rests is refused by most plans; one that rests is met at every stage of a start. */
const race = async (one: Racer, restMs: number): Promise<void> => {
  const { name, probes, request, target } = one
  const workspace = mkdtempSync(join(base, "workspace-"))
  chmodSync(workspace, 0o755)
  const before = picture()
  const racer = await startRacer(workspace, one, restMs)
  for (let call = 0; call < Number(callsText); call++) {
    counts.calls += 1
    try {
      const { output } = await processes.run({
        argv: ["sh", "-c", probeScript(probes)],
        ...request(workspace),
        network: false,
        outputCharsMax: 8_192,
        timeoutMs: 20_000,
        signal: new AbortController().signal
      })
      counts.ran += 1
      if (output.includes(secret)) escapes.push(`${name} -> ${target}: read`)
    } catch (error) {
      count(error)
    }
    if (picture() !== before) {
      escapes.push(`${name} -> ${target}: changed`)
      break
    }
  }
  await racer.kill()
  rmSync(workspace, { recursive: true, force: true })
}

const all = racers({ data, home, outside })
for (const [index, one] of all.entries()) {
  await race(one, index % 4 === 3 ? 0 : 30)
  if (mutant !== "" && escapes.length > 0) break
}
const ahead = processes.spareStats?.used ?? 0
await processes.close()
const report: RaceReport = {
  level: sandbox.level,
  uid: process.getuid?.() ?? -1,
  names: all.length,
  ...counts,
  ahead,
  escapes
}
process.stdout.write(`${JSON.stringify(report)}\n`)
