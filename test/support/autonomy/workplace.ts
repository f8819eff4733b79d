// Workspaces on a real disk, and places to check in.
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach } from "vitest"
import type { Place } from "#src/autonomy/evidence/Place.ts"

/** Makes a git repository of a directory, with these files committed. */
export const gitWorkspace = (directory: string, files: Readonly<Record<string, string>>): string => {
  const git = (...args: ReadonlyArray<string>) => execFileSync("git", ["-C", directory, ...args], { stdio: "pipe" })
  mkdirSync(directory, { recursive: true })
  git("init", "-q")
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  git("add", "-A")
  git("-c", "user.name=ada", "-c", "user.email=ada@localhost", "commit", "-q", "-m", "begin")
  return directory
}

/** A place to check in, with nothing known about what was before. */
export const placeIn = (directory: string): Omit<Place, "state"> => ({
  agentId: null,
  workspace: directory,
  directory,
  tree: undefined,
  changes: async () => undefined,
  baseline: () => undefined,
  signal: new AbortController().signal
})

/** Temporary directories that are gone after each test. */
export const useWorkspaces = (): { readonly make: () => string } => {
  const made: Array<string> = []
  afterEach(() => {
    for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true })
  })
  return {
    make: () => {
      const directory = mkdtempSync(join(tmpdir(), "echs-workspace-"))
      made.push(directory)
      return directory
    }
  }
}
