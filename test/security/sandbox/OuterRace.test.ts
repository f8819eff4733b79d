// Goal: nobody gets out of a sandbox whose repository lies outside of the workspace by exchanging names while it is made:
// the file `.git` of the workspace, and what a command may write to in the repository of a linked worktree or a submodule.
// Method: one command exchanges a name without end while others begin; whatever is read or changed outside is an escape.
// Verifies: G10, INV-TOOL-SANDBOX
import { execFileSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { ProcessNotStarted } from "#src/sandbox/process/ProcessErrors.ts"
import type { RunningProcess } from "#src/sandbox/process/ProcessPort.ts"
import { SandboxRefused } from "#src/sandbox/SandboxErrors.ts"
import { count, reportCount } from "../../support/counts.ts"
import { requirePart } from "../../support/require.ts"
import { bubblewrap, type Ground, makeGround } from "../../support/sandbox.ts"
import { isRoot } from "./users.ts"

let ground: Ground
beforeEach(async (context) => {
  requirePart(context, bubblewrap)
  // The launcher lays out its places in /tmp: what lies there is out of reach for a sandbox that goes by names, too.
  if (isRoot && existsSync("/srv")) vi.stubEnv("TMPDIR", "/srv")
  ground = await makeGround()
  vi.unstubAllEnvs()
  chmodSync(ground.base, 0o755)
  mkdirSync(keys(), { recursive: true })
  writeFileSync(join(keys(), "id"), "THE-SECRET\n")
  writeFileSync(join(ground.data, "token"), "THE-SECRET\n")
})
afterEach(() => ground?.clear())

const keys = (): string => join(ground.base, "home", ".ssh")
const mono = (): string => join(ground.base, "mono")

const git = (directory: string, ...args: ReadonlyArray<string>): string =>
  execFileSync(
    "git",
    [
      "-c",
      "protocol.file.allow=always",
      "-c",
      "user.name=a",
      "-c",
      "user.email=a@b.c",
      "-c",
      "safe.directory=*",
      ...args
    ],
    {
      cwd: directory,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env["PATH"], HOME: "/" }
    }
  )

const makeRepository = (name: string): string => {
  const directory = join(ground.base, name)
  mkdirSync(join(directory, "pkg"), { recursive: true })
  writeFileSync(join(directory, "pkg", "a.txt"), "one\n")
  git(directory, "init", "-q", "-b", "main")
  git(directory, "add", "-A")
  git(directory, "commit", "-qm", "first")
  return directory
}

const exchange = process.arch === "arm64" ? 276 : 316

interface Race {
  readonly workspace: () => string
  /** The name that is exchanged, in the workspace or by its whole path. */
  readonly name: () => string
  /** Makes what lies at the name, `$a`, and what it is exchanged for, `$b`. */
  readonly prepare: () => string
}

const packaged = (): string => join(makeRepository("mono"), "pkg")
const linked = (): string => {
  git(makeRepository("mono"), "worktree", "add", "-q", "-b", "side", join(ground.base, "linked"))
  rmSync(join(mono(), ".git/objects/info"), { recursive: true, force: true })
  return join(ground.base, "linked")
}
const submodule = (): string => {
  const library = makeRepository("library")
  git(makeRepository("mono"), "submodule", "--quiet", "add", library, "sub")
  return join(mono(), "sub")
}

const planted = (prepare: () => string): Race => ({ workspace: packaged, name: () => ".git", prepare })
const outer = (workspace: () => string, path: string, make: string): Race => ({
  workspace,
  name: () => join(mono(), ".git", path),
  prepare: () => `${make}; ln -s '${keys()}' "$b"`
})

const plant = (target: string, name: string): string => `printf 'gitdir: %s\\n' '${target}' > "${name}"`

const races: Readonly<Record<string, Race>> = {
  "a file .git that names keys, and a link to them": planted(() => `${plant(keys(), "$a")}; ln -s '${keys()}' "$b"`),
  "a file .git that names the repository above, and one that names data": planted(
    () => `${plant(join(mono(), ".git"), "$a")}; ${plant(ground.data, "$b")}`
  ),
  "a directory .git, and a link to keys": planted(
    () => `mkdir -p "$a"/objects "$a"/refs "$a"/hooks; echo 'ref: refs/heads/x' > "$a"/HEAD; ln -s '${keys()}' "$b"`
  ),
  "objects/info of a linked worktree, and a link to keys": outer(linked, "objects/info", 'mkdir "$a"'),
  "modules of a submodule, and a link to keys": outer(
    submodule,
    "modules/sub/modules",
    'mkdir -p "$a/inner/hooks"; : > "$a/inner/HEAD"'
  ),
  "worktrees of a submodule, and a link to keys": outer(
    submodule,
    "modules/sub/worktrees",
    'mkdir -p "$a/x"; echo ../.. > "$a/x/commondir"'
  )
}

const startRacer = async (workspace: string, script: string): Promise<RunningProcess> => {
  const { promise: ready, resolve } = Promise.withResolvers<void>()
  const swap = `perl -e '$| = 1; my ($a, $b) = @ARGV; print "ready\\n"; for (;;) { syscall(${exchange}, -100, $a, -100, $b, 2); select(undef, undef, undef, rand(20) / 1000) }' "$a" "$b"`
  const running = await ground.processes.start({
    argv: ["bash", "--norc", "-c", `${script}; ${swap}`],
    directory: workspace,
    writable: [workspace],
    network: false,
    onOutput: (_, bytes) => (bytes.includes("ready") ? resolve() : undefined)
  })
  await Promise.race([ready, running.ended])
  return running
}

const picture = (): string =>
  [keys(), ground.data]
    .flatMap((directory) => readdirSync(directory).map((name) => `${name} ${statSync(join(directory, name)).size}`))
    .join("\n")

interface Raced {
  ran: number
  held: number
  readonly escapes: Array<string>
}

const run = async (race: Race, calls: number): Promise<Raced> => {
  const workspace = race.workspace()
  const name = race.name()
  const before = picture()
  const racer = await startRacer(workspace, `a='${name}'; b='${name}.swap'; ${race.prepare()}`)
  const raced: Raced = { ran: 0, held: 0, escapes: [] }
  const places = [keys(), ground.data, name].map((path) => `'${path}'`).join(" ")
  const script = `for d in ${places}; do cat $d $d/*; echo x > $d/made; done; git log; true`
  const request = {
    argv: ["bash", "--norc", "-c", script],
    directory: workspace,
    writable: [workspace],
    network: false
  }
  for (let call = 0; call < calls && raced.escapes.length === 0; call += 1) {
    try {
      const { signal } = new AbortController()
      const { output } = await ground.processes.run({ ...request, outputCharsMax: 8_192, timeoutMs: 20_000, signal })
      raced.ran += 1
      if (output.includes("THE-SECRET")) raced.escapes.push("read")
    } catch (error) {
      if (!(error instanceof SandboxRefused || error instanceof ProcessNotStarted)) throw error
      raced.held += 1
    }
    if (picture() !== before) raced.escapes.push("changed")
  }
  await racer.kill()
  return raced
}

describe("a repository outside of the workspace", () => {
  it.each(Object.entries(races))(
    "lets nobody out while this is exchanged: %s",
    { timeout: 120_000 },
    async (_, race) => {
      const calls = count("calls for each race about a repository outside", { fast: 25, soak: 2_000 })
      const { escapes, held, ran } = await run(race, calls)
      expect(escapes).toEqual([])
      expect(ran + held).toBe(calls)
      reportCount("calls raced for a repository outside, none got out", calls)
      reportCount("of these, refused or found to be another sandbox", held)
    }
  )
})
