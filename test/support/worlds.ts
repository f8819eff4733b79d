// The two worlds in which tools run: commands held by a sandbox, and commands held by nothing, where every effect is asked
// about unless a rule allows it there. What is not about the sandbox itself is tested in both, on every machine: the
// second world is a search path without bubblewrap.
import { mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { afterAll, beforeAll, beforeEach } from "vitest"
import type { SandboxLevel } from "#src/sandbox/SandboxPort.ts"
import { requirePart } from "./require.ts"
import { bubblewrap } from "./sandbox.ts"

export interface World {
  readonly name: string
  readonly contained: boolean
  /** Levels to look for; all where nothing is said. */
  readonly levels?: ReadonlyArray<SandboxLevel>
}

export const worlds: ReadonlyArray<World> = [
  { name: "held by a sandbox", contained: true },
  { name: "held by nothing", contained: false, levels: ["limits_only"] }
]

/** Whether a server that is started here, with the variables of this process, holds its commands. */
export const isContainedHere = (): boolean => bubblewrap.isThere()

/** Lets everything run unasked, also where nothing holds it. */
export const freely = {
  policy: { mode: "full_access", rules: [{ decision: "allow", tool: "*", uncontained: true }] }
} as const

/** A folder with all programs of the search path but for these. */
const programsWithout = (hidden: ReadonlySet<string>): string => {
  const folder = mkdtempSync(join(tmpdir(), "programs-"))
  const seen = new Set(hidden)
  for (const directory of (process.env["PATH"] ?? "").split(delimiter)) {
    for (const name of namesIn(directory)) {
      if (seen.has(name)) continue
      seen.add(name)
      symlinkSync(join(directory, name), join(folder, name))
    }
  }
  return folder
}

const namesIn = (directory: string): ReadonlyArray<string> => {
  try {
    return readdirSync(directory)
  } catch {
    // In the search path, and not there.
    return []
  }
}

/** Within a describe: the world's search path for the tests of it, which are left out where the world cannot be had. */
export const useWorld = ({ contained }: World): (() => string) => {
  let path = process.env["PATH"] ?? ""
  let programs: string | undefined
  beforeAll(() => {
    if (contained) return
    programs = programsWithout(new Set(["bwrap"]))
    path = programs
  })
  afterAll(() => {
    if (programs !== undefined) rmSync(programs, { recursive: true, force: true })
  })
  beforeEach((context) => {
    if (contained) requirePart(context, bubblewrap)
  })
  return () => path
}
