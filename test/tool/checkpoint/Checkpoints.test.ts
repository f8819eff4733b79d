// Goal: files come back byte for byte, whatever happened to them, and nothing else is touched: not the index, HEAD or branches
// of the person, nothing outside, no file that was left out, and no program of the repository runs. Method: real git in the
// sandbox that is found and in none, real files; a model of the directory in memory; random sequences of edits with a seed.
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { CheckpointRefused } from "#src/tool/checkpoint/CheckpointErrors.ts"
import { checkpointLimits } from "#src/tool/checkpoint/CheckpointLimits.ts"
import { type CheckpointPort, checkpointPlace, makeCheckpoints } from "#src/tool/checkpoint/Checkpoints.ts"
import { count } from "../../support/counts.ts"
import { type Part, programRuns, requirePart } from "../../support/require.ts"
import { bubblewrap, type Ground, makeGround } from "../../support/sandbox.ts"
import { randomFrom, seedFor } from "../../support/seed.ts"
import { worlds } from "../../support/worlds.ts"

const gitPart: Part = {
  name: "git",
  isThere: () => programRuns("git", ["--version"]),
  remedy: "apt-get install git"
}

let ground: Ground
let checkpoints: CheckpointPort
let tmpMask = 0

const git = (...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["-c", "safe.directory=*", ...args], {
    cwd: ground.workspace,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    env: { PATH: process.env["PATH"] ?? "", HOME: ground.base, GIT_CONFIG_NOSYSTEM: "1" }
  })

const at = (...parts: ReadonlyArray<string>): string => join(ground.workspace, ...parts)
const put = (path: string, text: string | Uint8Array, mode = 0o644): void => {
  mkdirSync(join(at(path), ".."), { recursive: true })
  writeFileSync(at(path), text)
  chmodSync(at(path), mode)
}

/** Everything in a directory but git's own: kind, executable or not, content. Names are bytes. */
const contents = (directory: Buffer, below: Buffer = Buffer.alloc(0)): ReadonlyMap<string, string> => {
  const found = new Map<string, string>()
  for (const entry of readdirSync(directory, { withFileTypes: true, encoding: "buffer" })) {
    const name = Buffer.from(entry.name)
    if (name.toString("latin1") === ".git") continue
    const path = Buffer.concat([directory, Buffer.from("/"), name])
    const shown = Buffer.concat([below, Buffer.from("/"), name])
    const facts = lstatSync(path)
    if (facts.isDirectory()) for (const [key, value] of contents(path, shown)) found.set(key, value)
    else if (facts.isSymbolicLink()) found.set(shown.toString("hex"), `link ${readlinkSync(path)}`)
    else found.set(shown.toString("hex"), `${facts.mode & 0o100} ${readFileSync(path).toString("hex")}`)
  }
  return found
}
const now = (): ReadonlyMap<string, string> => contents(Buffer.from(ground.workspace))

const run = <A>(work: Effect.Effect<A, CheckpointRefused>): Promise<A> => Effect.runPromise(work)
const take = () => run(checkpoints.take({ workspace: ground.workspace, conversation_id: "conv_00000000" }))
const goBack = async (tree: string): Promise<number> => {
  const { tree: seen } = await run(checkpoints.preview(ground.workspace, tree))
  return run(checkpoints.restore(ground.workspace, { seen, back_to: tree }))
}
const problem = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "none",
    (error: CheckpointRefused) => error.problem
  )

const repository = (): void => {
  git("init", "--quiet", "--initial-branch=main")
  git("config", "user.name", "Somebody")
  git("config", "user.email", "somebody@example.org")
}

const commit = (): void => {
  git("add", "--all")
  git("commit", "--quiet", "--message=first")
}

/** What belongs to the person and must stay as it is. */
const ofThePerson = (): ReadonlyArray<string> => [
  git("symbolic-ref", "HEAD"),
  git("for-each-ref", "refs/heads", "refs/tags"),
  git("ls-files", "--stage"),
  git("status", "--short", "--ignored"),
  readFileSync(at(".git", "config"), "utf8")
]

const open = async (world: (typeof worlds)[number]): Promise<void> => {
  ground = await makeGround(world.levels === undefined ? {} : { levels: world.levels })
  const place = checkpointPlace({ dataDirectory: ground.data, home: join(ground.base, "home") }, ground.processes)
  checkpoints = makeCheckpoints(place, Scope.makeUnsafe())
}

beforeEach(() => {
  tmpMask = process.umask(0o022)
})
afterEach(async () => {
  process.umask(tmpMask)
  await ground.clear()
})

describe.each(worlds)("$name", (world) => {
  beforeEach(async (context) => {
    requirePart(context, gitPart)
    if (world.contained) requirePart(context, bubblewrap)
    await open(world)
  })

  it("brings back edits, deletions, new files, modes, links, binaries and strange names, and leaves the person's git alone", async () => {
    repository()
    put("kept.txt", "kept\n")
    put("a/b/edited.txt", "one\n")
    put(
      "a/gone.bin",
      Uint8Array.from({ length: 4096 }, (_, index) => index % 256)
    )
    put("run.sh", "#!/bin/sh\n", 0o755)
    put("crlf.txt", "one\r\ntwo\nthree\r\n")
    put(".gitattributes", "*.txt text=auto eol=crlf ident filter=mark\n")
    put("-dash", "-")
    put("new\nline", "name")
    writeFileSync(Buffer.concat([Buffer.from(at("byte-")), Buffer.from([0xff, 0xfe])]), "not UTF-8")
    symlinkSync("a/b/edited.txt", at("link"))
    commit()
    put("staged.txt", "staged $Id$\r\n")
    git("add", "staged.txt")
    put("untracked.txt", "untracked\r\n")
    const [files, person] = [now(), ofThePerson()]
    const taken = await take()
    expect(ofThePerson()).toEqual(person)
    put("a/b/edited.txt", "two\n")
    rmSync(at("a/gone.bin"))
    rmSync(at("untracked.txt"))
    chmodSync(at("run.sh"), 0o644)
    put("crlf.txt", "other\n")
    rmSync(at("link"))
    symlinkSync("/etc/passwd", at("link"))
    rmSync(Buffer.concat([Buffer.from(at("byte-")), Buffer.from([0xff, 0xfe])]))
    put("new\nline", "changed")
    put("deep/er/new.txt", "new\n")
    rmSync(at("-dash"))
    const preview = await run(checkpoints.preview(ground.workspace, taken.tree))
    expect(Object.fromEntries(preview.files.map(({ change, path }) => [path, change]))).toMatchObject({
      "a/b/edited.txt": "modify",
      "a/gone.bin": "create",
      "deep/er/new.txt": "delete",
      "run.sh": "mode",
      '"byte-\\377\\376"': "create"
    })
    expect(preview.patch).toContain("-two\n+one\n")
    expect(await goBack(taken.tree)).toBe(preview.files_total)
    expect(now()).toEqual(files)
    expect(existsSync(at("deep"))).toBe(false)
    expect(ofThePerson()).toEqual(person)
    expect(git("log", "--format=%s", "refs/echs/checkpoints/conv_00000000").trim()).toBe("conv_00000000")
  })

  it("works where there is no repository, and keeps nothing of that in the workspace", async () => {
    put("one.txt", "one\r\n")
    put("node_modules/x/index.js", "made\n")
    const files = now()
    const taken = await take()
    put("one.txt", "two")
    put("two.txt", "two")
    put("node_modules/x/index.js", "made again\n")
    await goBack(taken.tree)
    expect(now().get(Buffer.from("/one.txt").toString("hex"))).toBe(files.get(Buffer.from("/one.txt").toString("hex")))
    expect([existsSync(at("two.txt")), existsSync(at(".git"))]).toEqual([false, false])
    expect(readFileSync(at("node_modules/x/index.js"), "utf8")).toBe("made again\n")
  })

  it("no program of the repository runs, and a directory that became a link leads nowhere", async () => {
    repository()
    put("d/inner.txt", "inner\n")
    put("x.bin", "x\n")
    commit()
    const mark = join(ground.base, "mark")
    const program = at(".git", "program")
    writeFileSync(program, `#!/bin/sh\ntouch ${mark}\ncat\n`, { mode: 0o755 })
    for (const name of ["core.fsmonitor", "filter.mark.clean", "filter.mark.smudge", "diff.mark.textconv"])
      git("config", name, program)
    git("config", "filter.mark.required", "true")
    put(".gitattributes", "* filter=mark diff=mark\n")
    for (const hook of ["reference-transaction", "post-index-change", "post-checkout"])
      writeFileSync(at(".git", "hooks", hook), `#!/bin/sh\ntouch ${mark}\n`, { mode: 0o755 })
    const outside = join(ground.base, "outside")
    mkdirSync(outside)
    writeFileSync(join(outside, "inner.txt"), "outside")
    const taken = await take()
    rmSync(at("d"), { recursive: true })
    symlinkSync(outside, at("d"))
    put("x.bin", "y\n")
    await goBack(taken.tree)
    expect(lstatSync(at("d")).isDirectory()).toBe(true)
    expect(readFileSync(at("d/inner.txt"), "utf8")).toBe("inner\n")
    expect(readFileSync(join(outside, "inner.txt"), "utf8")).toBe("outside")
    expect(readFileSync(at("x.bin"), "utf8")).toBe("x\n")
    expect(existsSync(mark)).toBe(false)
  })
})

describe("whatever holds commands", () => {
  beforeEach(async (context) => {
    requirePart(context, gitPart)
    await open({ name: "held by nothing", contained: false, levels: ["limits_only"] })
    repository()
  })

  it("files that are ignored or too large are left out, and never overwritten or deleted", async () => {
    put(".gitignore", "*.log\n")
    put("made.log", "ignored\n")
    put("small.txt", "small\n")
    commit()
    const large = Buffer.alloc(checkpointLimits.fileKibMax * 1024 + 1, 1)
    put("large.bin", large)
    const taken = await take()
    expect(taken.left_out).toBe(1)
    put("large.bin", Buffer.alloc(large.length, 2))
    put("made.log", "changed\n")
    put("small.txt", large)
    put(".gitignore", "")
    const { tree } = await run(checkpoints.preview(ground.workspace, taken.tree))
    // In place of a file that was recorded lies one that was not: it would be lost.
    expect(await problem(run(checkpoints.restore(ground.workspace, { seen: tree, back_to: taken.tree })))).toBe(
      "git_failed"
    )
    expect(statSync(at("small.txt")).size).toBe(large.length)
    put("small.txt", "changed\n")
    await goBack(taken.tree)
    expect(readFileSync(at("small.txt"), "utf8")).toBe("small\n")
    expect(readFileSync(at("made.log"), "utf8")).toBe("changed\n")
    expect(readFileSync(at("large.bin")).equals(Buffer.alloc(large.length, 2))).toBe(true)
  })

  it("files that changed since they were looked at are not overwritten", async () => {
    put("a.txt", "one\n")
    commit()
    const taken = await take()
    put("a.txt", "two\n")
    const { tree } = await run(checkpoints.preview(ground.workspace, taken.tree))
    put("a.txt", "three\n")
    const refusal = run(checkpoints.restore(ground.workspace, { seen: tree, back_to: taken.tree }))
    expect(await problem(refusal)).toBe("files_changed")
    expect(readFileSync(at("a.txt"), "utf8")).toBe("three\n")
  })

  it("submodules and nested repositories stay as they are", async () => {
    put("a.txt", "one\n")
    commit()
    mkdirSync(at("nested"))
    execFileSync("git", ["init", "--quiet", at("nested")])
    put("nested/inner.txt", "inner\n")
    const taken = await take()
    put("nested/inner.txt", "changed\n")
    put("a.txt", "two\n")
    await goBack(taken.tree)
    expect([readFileSync(at("a.txt"), "utf8"), readFileSync(at("nested/inner.txt"), "utf8")]).toEqual([
      "one\n",
      "changed\n"
    ])
  })

  it("two files of one size and one age that changed places change back", async () => {
    put("a.txt", "aaaa\n")
    put("b.txt", "bbbb\n")
    commit()
    const taken = await take()
    renameSync(at("a.txt"), at("c.txt"))
    renameSync(at("b.txt"), at("a.txt"))
    renameSync(at("c.txt"), at("b.txt"))
    await goBack(taken.tree)
    expect([readFileSync(at("a.txt"), "utf8"), readFileSync(at("b.txt"), "utf8")]).toEqual(["aaaa\n", "bbbb\n"])
  })

  it("a part of a repository is recorded alone, by the rules of the whole", async () => {
    put(".gitignore", "*.log\n")
    put("part/a.txt", "one\n")
    put("other/b.txt", "one\n")
    commit()
    const part = { workspace: at("part"), conversation_id: "conv_00000001" }
    const taken = await run(checkpoints.take(part))
    put("part/a.txt", "two\n")
    put("part/new.log", "ignored\n")
    put("other/b.txt", "two\n")
    const { files, tree } = await run(checkpoints.preview(part.workspace, taken.tree))
    expect(files).toEqual([{ path: "a.txt", change: "modify" }])
    await run(checkpoints.restore(part.workspace, { seen: tree, back_to: taken.tree }))
    expect(["part/a.txt", "other/b.txt", "part/new.log"].map((path) => readFileSync(at(path), "utf8"))).toEqual([
      "one\n",
      "two\n",
      "ignored\n"
    ])
  })

  it("files come back byte for byte after random edits", async () => {
    const random = randomFrom(seedFor("checkpoints"))
    const pick = <A>(list: ReadonlyArray<A>): A | undefined => list[Math.floor(random() * list.length)]
    const names = ["a", "b", "d/a", "d/b", "d/e/a", "f g", "-x", "é", "d/é\n"]
    const clear = (path: string): void => rmSync(at(path), { recursive: true, force: true })
    const parents = (path: string): void => {
      for (const [index] of [...path].entries()) {
        const above = path.slice(0, index)
        if (path[index] === "/" && existsSync(at(above)) && !lstatSync(at(above)).isDirectory()) clear(above)
      }
    }
    const edit = (): void => {
      const path = pick(names) ?? "a"
      parents(path)
      const kind = random()
      if (kind < 0.1 && existsSync(at(path)) && statSync(at(path)).isFile()) {
        chmodSync(at(path), random() < 0.5 ? 0o755 : 0o644)
        return
      }
      clear(path)
      if (kind < 0.3) return
      if (kind < 0.4) {
        mkdirSync(join(at(path), ".."), { recursive: true })
        symlinkSync(pick(names) ?? "a", at(path))
        return
      }
      const bytes = Uint8Array.from({ length: Math.floor(random() * 40) }, () => Math.floor(random() * 256))
      put(path, bytes, random() < 0.3 ? 0o755 : 0o644)
    }
    const taken: Array<{ readonly tree: string; readonly files: ReadonlyMap<string, string> }> = []
    const rounds = count("undone sequences of edits", { fast: 8, soak: 500 })
    for (let round = 0; round < rounds; round++) {
      for (let index = 0; index < 1 + random() * 6; index++) edit()
      taken.push({ tree: (await take()).tree, files: now() })
      for (let index = 0; index < 1 + random() * 6; index++) edit()
      const back = pick(taken)
      if (back === undefined) continue
      const { tree: seen } = await take()
      await run(checkpoints.restore(ground.workspace, { seen, back_to: back.tree }))
      expect(now(), `round ${round}`).toEqual(back.files)
    }
  })
})
