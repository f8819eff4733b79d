// Goal: git works in a package of a larger repository, in a linked worktree and in a submodule, for the git tools and for
// commands in the sandbox, with what is protected at the root of a repository protected there too; and a file `.git` that
// leads anywhere else gains nothing. Method: real repositories made by plain git, real sandboxes, files looked at from outside.
import { execFileSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { makeGit } from "#src/autonomy/Git.ts"
import { mergeWorktree } from "#src/autonomy/WorktreeMerge.ts"
import { openWorktree, sweepWorktrees, worktreePath } from "#src/autonomy/Worktrees.ts"
import type { AgentId } from "#src/rune/Ids.ts"
import type { ProcessEnded } from "#src/sandbox/process/ProcessPort.ts"
import { builtinTools } from "#src/tool/builtin/Builtin.ts"
import type { Input, Tool } from "#src/tool/Tool.ts"
import { reportCount } from "../support/counts.ts"
import { requirePart } from "../support/require.ts"
import { bubblewrap, type Ground, makeGround } from "../support/sandbox.ts"
import { runTool } from "../support/tool/runTool.ts"
import { memoryBlobs, usePlace } from "../support/tool/ToolPlace.ts"

const place = usePlace()
let ground: Ground
beforeEach(async (context) => {
  requirePart(context, bubblewrap)
  ground = await makeGround()
})
afterEach(() => ground?.clear())

const git = (directory: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["-c", "safe.directory=*", "-c", "protocol.file.allow=always", ...args], {
    cwd: directory,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...{ PATH: process.env["PATH"], HOME: ground.base, GIT_CONFIG_NOSYSTEM: "1" },
      ...{ GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@b.c", GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a@b.c" }
    }
  })

const write = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** A repository with a package in it, and files that are nobody's business there. */
const makeMono = (name = "mono"): string => {
  const mono = join(ground.base, name)
  write(join(mono, ".gitignore"), "build/\n")
  write(join(mono, "packages/shop/a.txt"), "one\n")
  write(join(mono, "packages/other/b.txt"), "TRACKED-ELSEWHERE\n")
  git(mono, "init", "-q", "-b", "main")
  git(mono, "add", "-A")
  git(mono, "commit", "-qm", "first")
  write(join(mono, "packages/other/.env"), "SECRET-UNTRACKED\n")
  return mono
}

interface Layout {
  readonly workspace: string
  /** Where git keeps the settings that hold. */
  readonly common: string
  /** What belongs to the workspace alone; the same where there is no other. */
  readonly own: string
}

const layouts: Readonly<Record<string, () => Layout>> = {
  "a package of a larger repository": () => {
    const mono = makeMono()
    return { workspace: join(mono, "packages/shop"), common: join(mono, ".git"), own: join(mono, ".git") }
  },
  "a linked worktree": () => {
    const mono = makeMono()
    const workspace = join(ground.base, "linked")
    git(mono, "worktree", "add", "-q", "-b", "side", workspace)
    write(join(workspace, "a.txt"), "one\n")
    git(workspace, "add", "a.txt")
    git(workspace, "commit", "-qm", "a")
    return { workspace, common: join(mono, ".git"), own: join(mono, ".git/worktrees/linked") }
  },
  "a submodule": () => {
    const library = makeMono("library")
    write(join(library, "a.txt"), "one\n")
    git(library, "add", "-A", "--", "a.txt")
    git(library, "commit", "-qm", "a")
    const mono = makeMono()
    git(mono, "submodule", "--quiet", "add", library, "sub")
    git(mono, "commit", "-qm", "sub")
    const inner = join(mono, ".git/modules/sub")
    return { workspace: join(mono, "sub"), common: inner, own: inner }
  }
}

const toolNamed = (name: string): Tool =>
  builtinTools({
    ownDirectories: [ground.data],
    blobs: memoryBlobs(),
    processes: ground.processes,
    path: process.env["PATH"] ?? "",
    home: place.outside
  }).tools.find((tool) => tool.name === name)!

const callTool = (workspace: string, name: string, input: Input = {}) =>
  runTool(toolNamed(name), input, { ...place.context(), workspace })

const bash = (workspace: string, script: string): Promise<ProcessEnded> =>
  ground.run(script, {
    directory: workspace,
    writable: [workspace],
    environment: {
      ...{ GIT_AUTHOR_NAME: "m", GIT_AUTHOR_EMAIL: "m@b.c", GIT_COMMITTER_NAME: "m", GIT_COMMITTER_EMAIL: "m@b.c" }
    }
  })

describe.each(Object.entries(layouts))("in %s", (name, make) => {
  const isPart = name.startsWith("a package")

  it("the git tools tell and commit what is in the workspace, and nothing else", async () => {
    const { workspace } = make()
    expect((await callTool(workspace, "git_status")).output).toMatch(/^## (main|side)\S*\n$/u)
    write(join(workspace, "a.txt"), "two\n")
    write(join(workspace, "new.txt"), "new\n")
    if (isPart) write(join(workspace, "build/out"), "ignored\n")
    expect((await callTool(workspace, "git_status")).output).toMatch(/ M .*a\.txt\n\?\? .*new\.txt\n$/u)
    expect((await callTool(workspace, "git_diff")).output).toContain("+two")
    expect(await callTool(workspace, "git_commit", { message: "second", all: true })).toMatchObject({
      status: "success"
    })
    expect(git(workspace, "log", "-1", "--format=%s").trim()).toBe("second")
    const changed = git(workspace, "show", "--name-only", "--format=", "HEAD").trim().split("\n")
    expect(changed.map((path) => basename(path))).toEqual(["a.txt", "new.txt"])
    expect(git(workspace, "status", "--short", "--", ".")).toBe("")
  })

  it("a commit takes along nothing that was staged elsewhere, and runs hooks only where they can do no harm", async () => {
    const { common, workspace } = make()
    write(join(workspace, "a.txt"), "two\n")
    write(join(common, "hooks/pre-commit"), `#!/bin/sh\necho HOOK >> '${join(workspace, "hooked")}'\n`)
    chmodSync(join(common, "hooks/pre-commit"), 0o755)
    if (isPart) {
      write(join(workspace, "../other/b.txt"), "staged by somebody\n")
      git(workspace, "add", "../other/b.txt")
      const outcome = await callTool(workspace, "git_commit", { message: "no", all: true })
      expect(outcome.error?.message).toContain("staged, such as packages/other/b.txt")
      git(workspace, "reset", "-q")
    }
    const hooked = await callTool(workspace, "git_commit", { message: "hooked", all: true, run_hooks: true })
    expect(hooked.status).toBe(isPart ? "error" : "success")
    expect(existsSync(join(workspace, "hooked"))).toBe(!isPart)
    if (isPart) expect(hooked.error?.message).toContain("a part of its repository")
  })

  it("commands find their history, and commit where all of the files are theirs", async () => {
    const { workspace } = make()
    write(join(workspace, "a.txt"), "two\n")
    const looked = await bash(
      workspace,
      "git log --oneline && git status --short . && git diff . && git show HEAD:./a.txt"
    )
    expect(looked.output).toMatch(/ M .*a\.txt\n/u)
    expect(looked.output).toContain("+two")
    expect(looked.exit_code).toBe(0)
    const before = git(workspace, "rev-parse", "HEAD")
    const committed = await bash(workspace, "git add -A && git commit -qm by-command && git status --short")
    if (isPart) {
      expect(committed.output).toContain("Read-only file system")
      expect(git(workspace, "rev-parse", "HEAD")).toBe(before)
    } else {
      expect(committed).toMatchObject({ exit_code: 0, output: "" })
      expect(git(workspace, "log", "-1", "--format=%s").trim()).toBe("by-command")
      expect(git(workspace, "fsck", "--strict")).toBe("")
    }
  })

  it("what programs outside would run or go by cannot be changed, nor what is not of the workspace", async () => {
    const { common, own, workspace } = make()
    const settings = readFileSync(join(common, "config"), "utf8")
    const always = ["config", "hooks/post-commit", "config.worktree", "commondir"]
    const shared = ["HEAD", "index", "packed-refs", "info/attributes", "info/exclude"]
    const tried = [
      ...[...always, ...(isPart || own !== common ? shared : [])].map((path) => join(common, path)),
      ...(own === common ? [] : ["gitdir", "commondir", "config.worktree"].map((path) => join(own, path)))
    ]
    for (const path of tried) {
      await bash(
        workspace,
        `mkdir -p '${dirname(path)}'; echo MARK >> '${path}'; echo MARK > '${path}.x' && mv '${path}.x' '${path}'`
      )
      const text = existsSync(path) ? readFileSync(path, "latin1") : ""
      expect(text, path).not.toContain("MARK")
    }
    await bash(workspace, "git config core.fsmonitor ./MARK; git config --worktree core.fsmonitor ./MARK")
    await bash(workspace, `mv '${common}' '${common}.moved'; rm -rf '${common}/hooks' '${common}/config'`)
    expect(readFileSync(join(common, "config"), "utf8")).toBe(settings)
    reportCount("protected names of outer repositories written to in vain", tried.length)
  })

  it("a goal tells what changed, and its workers have worktrees where all of the files are there", async () => {
    const { workspace } = make()
    const own = makeGit(
      {
        runner: {
          contained: true,
          run: (request) => ground.processes.run(request),
          ruling: () => ({ decision: "allow", reason: "" })
        }
      },
      workspace,
      new AbortController().signal
    )
    const index = git(workspace, "ls-files", "--stage")
    const before = await own.writeTree(workspace)
    write(join(workspace, "a.txt"), "two\n")
    const after = await own.writeTree(workspace)
    expect(git(workspace, "diff", "--name-only", String(before), String(after)).trim()).toMatch(/a\.txt$/u)
    const agent = "agt_ann0" as AgentId
    const opened = await openWorktree(own, workspace, agent)
    if (isPart) {
      expect(opened).toMatchObject({
        _tag: "Failed",
        reason: expect.stringContaining("packages/shop/ of a repository")
      })
      return
    }
    const place = worktreePath(workspace, agent)
    expect(opened).toEqual({ _tag: "Opened", path: place })
    write(join(place, "b.txt"), "by a worker\n")
    expect((await callTool(place, "git_status")).output).toContain("?? b.txt")
    expect(await callTool(place, "git_commit", { message: "there", all: true })).toMatchObject({ status: "success" })
    // Commands of workers are merged by files: git is not theirs.
    expect((await bash(place, "git log")).exit_code).not.toBe(0)
    expect(await mergeWorktree(own, workspace, agent)).toMatchObject({ _tag: "Merged" })
    expect(readFileSync(join(workspace, "b.txt"), "utf8")).toBe("by a worker\n")
    expect(await sweepWorktrees(own, workspace, "agt_", [])).toEqual({ kept: [], left: [] })
    expect(git(workspace, "ls-files", "--stage")).toBe(index)
  })

  it("nothing else of the machine is there", async () => {
    const { workspace } = make()
    const seen = await bash(
      workspace,
      `cat '${ground.base}'/mono/packages/other/.env '${ground.base}'/mono/packages/other/b.txt; ls -A '${ground.base}' '${ground.data}'`
    )
    expect(seen.stdout).not.toMatch(/SECRET-UNTRACKED|TRACKED-ELSEWHERE/u)
    expect(existsSync(join(ground.base, "mono/packages/other/.env"))).toBe(true)
  })
})

describe("a file .git", () => {
  const planted = (text: string): string => {
    const workspace = join(ground.base, "planted")
    write(join(workspace, "a.txt"), "one\n")
    writeFileSync(join(workspace, ".git"), text)
    return workspace
  }

  const expectNothing = async (workspace: string, secret: string): Promise<void> => {
    expect(await callTool(workspace, "git_status")).toMatchObject({
      status: "error",
      error: { code: "not_a_repository" }
    })
    const seen = await bash(
      workspace,
      `git log; git status; cat '${secret}'; echo MARK > '${secret}'; ls -A "$(dirname '${secret}')"`
    )
    expect(seen.stdout).not.toContain("SECRET")
    expect(existsSync(secret) ? readFileSync(secret, "utf8") : "").not.toContain("MARK")
  }

  it("that leads to keys, to data, to another repository or to a directory that does not name the workspace gains nothing", async () => {
    const mono = makeMono()
    const linked = join(ground.base, "linked")
    git(mono, "worktree", "add", "-q", "-b", "side", linked)
    const keys = join(ground.base, "home/.ssh")
    write(join(keys, "id"), "SECRET-KEY\n")
    write(join(ground.data, "token"), "SECRET-TOKEN\n")
    write(join(mono, ".git/description"), "SECRET-DESCRIPTION\n")
    const cases: ReadonlyArray<readonly [string, string]> = [
      [keys, join(keys, "id")],
      [ground.data, join(ground.data, "token")],
      [join(mono, ".git"), join(mono, ".git/description")],
      [join(mono, ".git/worktrees/linked"), join(mono, ".git/description")],
      [`${mono}/.git/worktrees/../`, join(mono, ".git/description")],
      ["../mono/.git", join(mono, ".git/description")],
      ["/", "/root/.profile"]
    ]
    for (const [target, secret] of cases) await expectNothing(planted(`gitdir: ${target}\n`), secret)
    // The other way round: the repository names the workspace, but not as its own.
    writeFileSync(join(mono, ".git/worktrees/linked/gitdir"), `${join(ground.base, "planted/.git")}\n`)
    writeFileSync(join(mono, ".git/worktrees/linked/commondir"), `${keys}\n`)
    await expectNothing(planted(`gitdir: ${join(mono, ".git/worktrees/linked")}\n`), join(keys, "id"))
    reportCount("planted files .git followed nowhere", cases.length + 1)
  })

  it("leads through no link, to no other owner, and to no home above", async () => {
    const { common, own, workspace } = layouts["a linked worktree"]!()
    execFileSync("ln", ["-s", join(ground.base, "mono"), join(ground.base, "alias")])
    writeFileSync(join(workspace, ".git"), `gitdir: ${join(ground.base, "alias/.git/worktrees", basename(own))}\n`)
    expect((await callTool(workspace, "git_status")).error?.code).toBe("not_a_repository")
    writeFileSync(join(workspace, ".git"), `gitdir: ${own}\n`)
    expect((await callTool(workspace, "git_status")).status).toBe("success")
    if (process.getuid?.() !== 0) return
    execFileSync("chown", ["12345", common])
    expect((await callTool(workspace, "git_status")).error?.code).toBe("not_a_repository")
  })

  it("is not looked for above a directory that everybody can write to, nor in a home", async () => {
    const mono = makeMono()
    const workspace = join(mono, "packages/shop")
    chmodSync(join(mono, "packages"), 0o777)
    expect((await callTool(workspace, "git_status")).error?.code).toBe("not_a_repository")
    chmodSync(join(mono, "packages"), 0o755)
    expect((await callTool(workspace, "git_status")).status).toBe("success")
    const home = join(ground.base, "home")
    write(join(home, "project/a.txt"), "one\n")
    git(home, "init", "-q")
    rmSync(join(home, ".ssh"), { recursive: true, force: true })
    expect((await callTool(join(home, "project"), "git_status")).error?.code).toBe("not_a_repository")
  })
})
