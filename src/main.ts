// The composition root: the only place where the parts are put together. It knows every verb and gives each the
// parts it works with, loaded when the verb runs and not before.
import type { Runelog } from "#runelog/Runelog.ts"
import { runCli } from "./cli/Cli.ts"
import type { DemoLog } from "./cli/demo/DemoLog.ts"
import { processTerminal } from "./cli/ProcessTerminal.ts"
import type { ExitCode, VerbEntry } from "./cli/Verb.ts"
import type { VerifyReport } from "./cli/verify.ts"
import { dataDirectory, readEnvironment, readVersion } from "./config/Environment.ts"

export interface Start {
  /** The file that was started, to start it again. */
  readonly launcher: string
}

export const main = (args: ReadonlyArray<string>, start: Start): Promise<ExitCode> =>
  runCli({ version: readVersion(), verbs: verbs(start) }, args, processTerminal)

const verbs = (start: Start): ReadonlyArray<VerbEntry> => [
  {
    name: "serve",
    summary: "runs the server on a data directory until it is told to stop",
    load: async () => {
      const { makeServe } = await import("./main/ServeVerb.ts")
      return makeServe({ environment: readEnvironment(), version: readVersion() })
    }
  },
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
  },
  {
    name: "verify",
    summary: "reads a whole data directory and says what is wrong with it, if anything",
    load: async () => {
      const { makeVerify } = await import("./cli/verify.ts")
      return makeVerify({ dataDirectory: (flag) => dataDirectory(readEnvironment(), flag), verify: verifyDirectory })
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

const verifyDirectory = async (directory: string): Promise<VerifyReport | "missing"> => {
  const [{ verify }, { DataMissing }] = await Promise.all([import("#runelog/Verify.ts"), import("#runelog/Errors.ts")])
  try {
    return await verify({ directory })
  } catch (error) {
    if (error instanceof DataMissing) return "missing"
    throw error
  }
}
