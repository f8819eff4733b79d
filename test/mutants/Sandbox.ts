// A copy of the project to break: the files git knows of, with the installed packages linked in. Runs test files in it
// and says how they ended. A run that hangs is ended with everything it started.
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { type Mutant, mutate } from "./Mutant.ts"

/** How long the tests of one mutant may take. */
const runLimitMs = 300_000

export type Outcome =
  /** A test failed. */
  | { readonly _tag: "Caught"; readonly by: string }
  | { readonly _tag: "Survived" }
  /** The tests did not end in time. */
  | { readonly _tag: "Hung" }
  /** No test ran: the mutant does not load, or a test file is missing. */
  | { readonly _tag: "Broken"; readonly reason: string }

interface JsonReport {
  readonly numPassedTests: number
  readonly testResults: ReadonlyArray<{
    readonly message: string
    readonly assertionResults: ReadonlyArray<{ readonly fullName: string; readonly status: string }>
  }>
}

const outcomeOf = (report: JsonReport): Outcome => {
  const failed = report.testResults.flatMap(({ assertionResults }) => assertionResults)
  const first = failed.find(({ status }) => status === "failed")
  if (first !== undefined) return { _tag: "Caught", by: first.fullName.trim() }
  const unloaded = report.testResults.find(({ message }) => message !== "")
  if (unloaded !== undefined) return { _tag: "Broken", reason: unloaded.message.split("\n")[0] ?? "" }
  return report.numPassedTests === 0 ? { _tag: "Broken", reason: "no test ran" } : { _tag: "Survived" }
}

/** The whole group: tests start processes of their own. */
const endGroup = (child: ChildProcess): void => {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL")
  } catch {
    // It is gone already.
  }
}

export class Sandbox {
  readonly directory: string
  private readonly top: string
  private child: ChildProcess | undefined

  constructor(top: string) {
    this.top = top
    this.directory = mkdtempSync(join(tmpdir(), "echs-mutant-"))
    const listed = execFileSync("git", ["-C", top, "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    for (const file of listed.toString().split("\0")) {
      if (file === "" || !existsSync(join(top, file))) continue
      mkdirSync(dirname(join(this.directory, file)), { recursive: true })
      cpSync(join(top, file), join(this.directory, file))
    }
    symlinkSync(join(top, "node_modules"), join(this.directory, "node_modules"))
  }

  /** Runs the tests of a mutant with its lie in place, and takes it out again. */
  async tryMutant(mutant: Mutant): Promise<Outcome> {
    const path = join(this.directory, mutant.file)
    const sound = readFileSync(join(this.top, mutant.file), "utf8")
    writeFileSync(path, mutate(sound, mutant))
    try {
      return await this.runTests(mutant.tests)
    } finally {
      writeFileSync(path, sound)
    }
  }

  async runTests(files: ReadonlyArray<string>): Promise<Outcome> {
    const reportFile = join(this.directory, "mutant-report.json")
    rmSync(reportFile, { force: true })
    const vitest = join(this.directory, "node_modules/vitest/vitest.mjs")
    const args = [vitest, "run", "--bail=1", "--reporter=json", `--outputFile=${reportFile}`, ...files]
    const child = spawn(process.execPath, args, { cwd: this.directory, detached: true, stdio: "ignore" })
    this.child = child
    const limit = AbortSignal.timeout(runLimitMs)
    const onLimit = (): void => endGroup(child)
    limit.addEventListener("abort", onLimit)
    await new Promise((resolve) => child.once("close", resolve))
    limit.removeEventListener("abort", onLimit)
    endGroup(child)
    this.child = undefined
    if (limit.aborted) return { _tag: "Hung" }
    if (!existsSync(reportFile)) return { _tag: "Broken", reason: "the test runner gave no report" }
    return outcomeOf(JSON.parse(readFileSync(reportFile, "utf8")))
  }

  close(): void {
    if (this.child !== undefined) endGroup(this.child)
    rmSync(this.directory, { recursive: true, force: true })
  }
}
