// The order of test files: those that take long come first, the longest at the head, so that at the end of a run no
// worker waits for another that has just begun with one of them. The rest follows in the order that vitest gives it,
// which knows durations only where the same tree was tested before.
import { relative } from "node:path"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Ten seconds and more each, on two cores; what is not listed is shorter. */
export const longest: ReadonlyArray<string> = [
  "test/crash/Simulated.test.ts",
  "test/security/Fuzz.test.ts",
  "test/crash/Kill.test.ts",
  "test/runelog/Flip.test.ts",
  "test/sim/Runtime.test.ts",
  "test/security/sandbox/Escapes.test.ts",
  "test/e2e/approval.test.ts",
  "test/crash/Strace.test.ts",
  "test/e2e/runtimeCuts.test.ts",
  "test/crash/runtimeCrash.test.ts",
  "test/provider/Cuts.test.ts",
  "test/crash/goalKill.test.ts",
  "test/cli/Demo.test.ts",
  "test/conversation/Memory.test.ts",
  "test/fault/DiskFull.test.ts",
  "test/runelog/Cut.test.ts",
  "test/e2e/server.test.ts",
  "test/sandbox/process/Processes.test.ts",
  "test/package/Package.test.ts",
  "test/e2e/goal.test.ts",
  "test/security/canary.test.ts",
  "test/server/HttpListener.test.ts",
  "test/e2e/cli.test.ts",
  "test/runelog/Runelog.model.test.ts",
  "test/autonomy/Restart.test.ts",
  "test/e2e/serverRaces.test.ts",
  "test/crash/PowerCut.test.ts",
  "test/e2e/cliTerminal.test.ts",
  "test/autonomy/Worktrees.test.ts",
  "test/crash/TwoWriters.test.ts",
  "test/e2e/mcp.test.ts",
  "test/e2e/runtimeFaults.test.ts",
  "test/e2e/mcpAndHooksCrash.test.ts",
  "test/tool/mcp.test.ts",
  "test/provider/Malformed.test.ts",
  "test/sim/Mutants.test.ts",
  "test/fault/SlowDisk.test.ts",
  "test/tidy/Tidy.test.ts",
  "test/support/support.test.ts",
  "test/budget/Budget.test.ts",
  "test/e2e/clientResume.test.ts"
]

/** Sorts paths that are relative to the top of the project; those that are not listed keep their order. */
export const longestFirst = <A>(files: ReadonlyArray<A>, pathOf: (file: A) => string): Array<A> => {
  const rankOf = (file: A): number => {
    const at = longest.indexOf(pathOf(file))
    return at < 0 ? longest.length : at
  }
  return files.toSorted((left, right) => rankOf(left) - rankOf(right))
}

export default class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const { root } = this.ctx.config
    return longestFirst(await super.sort(files), ({ moduleId }) => relative(root, moduleId).replaceAll("\\", "/"))
  }
}
