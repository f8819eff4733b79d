// The composition root: the only place where the parts are put together. It knows every verb and gives each the
// parts it works with, loaded when the verb runs and not before.
import type { Runelog } from "#runelog/Runelog.ts"
import { runCli } from "./cli/Cli.ts"
import type { DemoLog } from "./cli/demo/DemoLog.ts"
import { processTerminal } from "./cli/ProcessTerminal.ts"
import type { ExitCode, VerbEntry } from "./cli/Verb.ts"
import type { VerifiedFault, VerifyReport } from "./cli/verify.ts"
import { readVersion } from "./config/Environment.ts"

export interface Start {
  /** The file that was started, to start it again. */
  readonly launcher: string
}

export const main = (args: ReadonlyArray<string>, start: Start): Promise<ExitCode> =>
  runCli({ version: readVersion(), verbs: verbs(start) }, args, processTerminal)

const verbs = (start: Start): ReadonlyArray<VerbEntry> => [
  {
    name: "demo",
    summary: "kills a writer in the middle of its work and shows that its log lost nothing",
    load: async () => {
      const [{ makeDemo }, { Runelog }] = await Promise.all([import("./cli/demo.ts"), import("#runelog/Runelog.ts")])
      return makeDemo({
        openLog: async (directory) => demoLog(await Runelog.open({ directory })),
        verify: verifyDirectory,
        command: [process.execPath, start.launcher]
      })
    }
  }
]

const demoLog = (log: Runelog): DemoLog => ({
  append: (name, firstEventId, bodies) =>
    log.append(
      name,
      firstEventId,
      bodies.map((body) => ({ body }))
    ),
  head: (name) => log.head(name),
  read: async function* (name) {
    const head = await log.head(name)
    for (let after = 0; after < head; ) {
      const page = await log.read(name, { after })
      for (const { body } of page.frames) yield body
      after = page.next
    }
  },
  close: () => log.close()
})

/** Reads every entry of every log; each page is checked on its way. */
const verifyDirectory = async (directory: string): Promise<VerifyReport> => {
  const [{ Runelog }, { SegmentCorrupt }] = await Promise.all([
    import("#runelog/Runelog.ts"),
    import("#runelog/Errors.ts")
  ])
  const log = await Runelog.open({ directory })
  const report = { logs: 0, entries: 0, bytes: 0, faults: [] as Array<VerifiedFault> }
  try {
    for (const name of await log.list()) {
      report.logs += 1
      for await (const body of demoLog(log).read(name)) {
        report.entries += 1
        report.bytes += body.length
      }
    }
  } catch (error) {
    if (!(error instanceof SegmentCorrupt)) throw error
    report.faults.push({ file: error.file, offset: error.offset, reason: error.reason })
  } finally {
    await log.close()
  }
  return report
}
