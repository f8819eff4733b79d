// LMDB puts that are on disk when they resolve. `overlappingSync` is off because with it the promise resolves before the
// flush; keys are 32-bit integers, the cheapest it has. It comes from a package of its own, because nothing else needs it
// and because it is the only one that would run a script when it is installed.
import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { drive, nothing, type Subject, timed } from "./sampling.ts"
import { body, conversationsKeyed, recordsBefore } from "./settings.ts"
import type { Keying } from "./sqlite.ts"

interface Database {
  readonly put: (key: number, value: Buffer) => Promise<boolean>
  readonly transaction: (action: () => void) => Promise<void>
  readonly close: () => Promise<void>
}

interface Lmdb {
  readonly open: (options: Readonly<Record<string, string | boolean>>) => Database
}

const rivals = join(import.meta.dirname, "..", "rivals")

/** Installed at the first use, as its lockfile says, and without its script. */
const loadLmdb = (): Lmdb => {
  if (!existsSync(join(rivals, "node_modules", "lmdb")))
    execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
      cwd: rivals,
      stdio: ["ignore", "ignore", "inherit"],
      shell: process.platform === "win32"
    })
  return createRequire(join(rivals, "package.json"))("lmdb")
}

const keyingText: Readonly<Record<Keying, string>> = {
  keyed: "keyed over 1,000 conversations",
  sequence: "one sequence"
}

export const lmdbName = (outstanding: number, keying: Keying): string =>
  `LMDB durable puts, ${outstanding} outstanding, ${keyingText[keying]}`

const SEQ_BITS = 22

const makeKeys = (keying: Keying): (() => number) => {
  let count = 0
  return () => {
    const conversation = count % conversationsKeyed
    const seq = Math.floor(count / conversationsKeyed) + 1
    count += 1
    return keying === "keyed" ? conversation * 2 ** SEQ_BITS + seq : count
  }
}

export const makeLmdb = (directory: string, outstanding: number, keying: Keying): Subject => {
  const nextKey = makeKeys(keying)
  let database: Database | undefined
  return {
    name: lmdbName(outstanding, keying),
    prepare: async () => {
      const path = join(directory, `lmdb-${keying}-${outstanding}`)
      const opened = loadLmdb().open({
        path,
        keyEncoding: "uint32",
        encoding: "binary",
        overlappingSync: false,
        noMemInit: true
      })
      await opened.transaction(() => {
        for (let put = 0; put < conversationsKeyed * recordsBefore; put++) void opened.put(nextKey(), body)
      })
      database = opened
    },
    sample: (seconds) =>
      timed((latency, startedMs) => {
        const opened = database!
        const endMs = startedMs + seconds * 1000
        const append = () => opened.put(nextKey(), body)
        return drive({ outstanding, append, isOver: (nowMs) => nowMs >= endMs }, latency)
      }),
    settle: nothing,
    close: async () => database?.close()
  }
}
