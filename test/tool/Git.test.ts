// Goal: the git tools tell and commit what is there, and nothing that a repository names ever runs: hooks, monitors, pagers,
// external diffs, text conversions, filters, signing programs. Method: real repositories, real git through the process
// port; every program that git could be made to start leaves a mark if it does.
import { execFileSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeEach, describe, expect, it } from "vitest"
import { builtinTools } from "#src/tool/builtin/Builtin.ts"
import { builtinLimits } from "#src/tool/builtin/BuiltinLimits.ts"
import { identityIn } from "#src/tool/builtin/git/Git.ts"
import type { Input, Tool } from "#src/tool/Tool.ts"
import { requirePart } from "../support/require.ts"
import { bubblewrap } from "../support/sandbox.ts"
import { searchPath, useProcesses } from "../support/tool/processes.ts"
import { previewOf, runTool } from "../support/tool/runTool.ts"
import { memoryBlobs, usePlace } from "../support/tool/ToolPlace.ts"

const place = usePlace()
const processes = useProcesses()
const blobs = memoryBlobs()

const toolNamed = (name: string): Tool =>
  builtinTools({ ownDirectories: [place.data], blobs, processes, path: searchPath, home: place.outside }).tools.find(
    (tool) => tool.name === name
  )!
const run = (name: string, input: Input = {}) => place.run(toolNamed(name), input)

const git = (...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["-c", "safe.directory=*", ...args], {
    cwd: place.workspace,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    env: { PATH: searchPath, HOME: place.outside, GIT_CONFIG_NOSYSTEM: "1" }
  })

const put = (path: string, text: string): void => writeFileSync(join(place.workspace, path), text)

beforeEach(() => {
  git("init", "--quiet", "--initial-branch=main")
  git("config", "user.name", "Somebody")
  git("config", "user.email", "somebody@example.org")
  put("a.txt", "one\ntwo\n")
  git("add", ".")
  git("commit", "--quiet", "--message=first")
})

describe("in the worktree of a worker", () => {
  const made = (name: string): string => {
    const root = join(place.workspace, ".echs", "worktrees", name)
    git("worktree", "add", "--quiet", "--detach", root)
    return root
  }
  const runIn = (workspace: string, name: string, input: Input = {}) =>
    runTool(toolNamed(name), input, { ...place.context(), workspace })

  it("the git tools tell and commit what was done there, and the workspace keeps branch and index", async () => {
    const root = made("agt_1")
    const before = [git("rev-parse", "main"), git("status", "--short", "--", "a.txt")]
    writeFileSync(join(root, "a.txt"), "one\nthree\n")
    expect((await runIn(root, "git_status")).output).toContain(" M a.txt\n")
    expect((await runIn(root, "git_diff")).output).toContain("+three")
    expect(await runIn(root, "git_commit", { message: "there", all: true })).toMatchObject({ status: "success" })
    const head = execFileSync("git", ["-c", "safe.directory=*", "log", "-1", "--format=%s %P"], {
      cwd: root,
      encoding: "utf8"
    })
    expect(head.trim()).toBe(`there ${git("rev-parse", "main").trim()}`)
    expect([git("rev-parse", "main"), git("status", "--short", "--", "a.txt")]).toEqual(before)
  })

  it("no hook runs with a way into the repository", async (context) => {
    requirePart(context, bubblewrap)
    const root = made("agt_2")
    const mark = join(place.workspace, ".git", "mark")
    writeFileSync(join(place.workspace, ".git", "hooks", "pre-commit"), `#!/bin/sh\ntouch ${mark}\n`, { mode: 0o755 })
    writeFileSync(join(root, "a.txt"), "four\n")
    await runIn(root, "git_commit", { message: "with hooks", all: true, run_hooks: true })
    expect(existsSync(mark)).toBe(false)
  })

  it("no other repository is followed", async () => {
    const root = made("agt_3")
    expect(await runIn(root, "git_status")).toMatchObject({ status: "success" })
    const refused = { status: "error", error: { code: "not_a_repository" } }
    writeFileSync(join(root, ".git"), `gitdir: ${join(place.workspace, ".git")}\n`)
    expect(await runIn(root, "git_status")).toMatchObject(refused)
    writeFileSync(join(root, ".git"), `gitdir: ${join(place.workspace, ".git", "worktrees", "agt_4")}\n`)
    made("agt_4")
    expect(await runIn(root, "git_status")).toMatchObject(refused)
  })
})

describe("the git tools", () => {
  it("tell what changed", async () => {
    expect(await run("git_status")).toEqual({ status: "success", output: "## main\n" })
    expect(await run("git_diff")).toEqual({ status: "success", output: "no differences" })
    put("a.txt", "one\nTWO\n")
    put("new file.txt", "new\n")
    expect((await run("git_status")).output).toBe('## main\n M a.txt\n?? "new file.txt"\n')
    const { output } = await run("git_diff")
    expect(output).toContain("--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n")
    expect((await run("git_diff", { paths: ["new file.txt"] })).output).toBe("no differences")
    expect((await run("git_diff", { stat: true })).output).toContain("1 file changed, 1 insertion(+), 1 deletion(-)")
  })

  it("commit named paths, everything, or what is staged", async () => {
    put("a.txt", "changed\n")
    put("b.txt", "new\n")
    const outcome = await run("git_commit", { message: "only b\n\nwhy", paths: ["b.txt"] })
    expect(outcome).toMatchObject({ status: "success" })
    expect(outcome.output).toContain("only b")
    expect(outcome.output).toContain(git("rev-parse", "--short", "HEAD").trim())
    expect(git("log", "-1", "--format=%an %ae %B").trim()).toBe("Somebody somebody@example.org only b\n\nwhy")
    expect(git("show", "--stat", "--format=")).toContain("1 file changed")
    expect(git("status", "--short").trim()).toBe("M a.txt")
    expect(await run("git_commit", { message: "nothing" })).toMatchObject({
      status: "error",
      error: { code: "nothing_to_commit" }
    })
    expect(await run("git_commit", { message: "all", all: true })).toMatchObject({ status: "success" })
    expect(git("status", "--short")).toBe("")
    expect((await run("git_diff", { from: "HEAD~1", to: "HEAD" })).output).toContain("+changed")
  })

  it("commit as the user where the repository names nobody, and as ECHS where nobody does", async () => {
    git("config", "--unset", "user.name")
    git("config", "--unset", "user.email")
    put("b.txt", "b\n")
    await run("git_commit", { message: "b", all: true })
    expect(git("log", "-1", "--format=%an <%ae>").trim()).toBe("ECHS <echs@localhost>")
    writeFileSync(
      join(place.outside, ".gitconfig"),
      '[core]\n\tname = x\n[user]\n\tname = "A Person"\n\temail = a@b.c\n'
    )
    put("c.txt", "c\n")
    await run("git_commit", { message: "c", all: true })
    expect(git("log", "-1", "--format=%an <%ae>").trim()).toBe("A Person <a@b.c>")
    expect(identityIn('[user "x"]\nname = no\n[other]\nemail = no\n')).toEqual({})
  })

  it.each([
    ["git_diff", { from: "--output=stolen" }, "invalid_arguments"],
    ["git_diff", { from: "a b" }, "invalid_arguments"],
    ["git_diff", { from: "nowhere" }, "git_failed"],
    ["git_diff", { paths: ["../secret"] }, "outside_workspace"],
    ["git_commit", { message: "x", paths: ["not there"] }, "git_failed"],
    ["git_commit", { message: "x", paths: ["--all"] }, "git_failed"]
  ])("refuse what makes no sense: %s %j", async (name, input, code) => {
    const status = code === "outside_workspace" ? "sandbox_violation" : "error"
    expect(await run(name, input)).toMatchObject({ status, error: { code } })
    expect(existsSync(join(place.workspace, "stolen"))).toBe(false)
  })

  it("say that there is no repository", async () => {
    mkdirSync(join(place.outside, "plain"))
    const context = { ...place.context(), workspace: join(place.outside, "plain") }
    for (const name of ["git_status", "git_diff", "git_commit"])
      expect(await runTool(toolNamed(name), { message: "x" }, context), name).toMatchObject({
        status: "error",
        error: { code: "not_a_repository" }
      })
  })

  it("keep all of a long diff", async () => {
    put("a.txt", `${"a line of some length\n".repeat(20_000)}the end\n`)
    const outcome = await run("git_diff")
    expect(outcome.output?.length).toBeLessThan(builtinLimits.gitOutputCharsMax + 1_000)
    const whole = blobs.kept.get(outcome.output_blob?.sha256 ?? "")?.toString()
    expect(whole?.split("\n").filter((line) => line === "+a line of some length")).toHaveLength(20_000)
    const page = await run("read_file", { path: `blob:${outcome.output_blob?.sha256}`, offset: 20_000, limit: 2 })
    expect(page.output).toContain("+a line of some length\n")
  })
})

describe("what a repository names", () => {
  /** A program that leaves a mark where nobody else writes. */
  const trap = (name: string): string => {
    const file = join(place.workspace, `trap-${name}.sh`)
    writeFileSync(
      file,
      `#!/bin/sh\necho ran >> "${join(place.workspace, `ran-${name}`)}"\ncat "$@" 2>/dev/null\nexit 0\n`
    )
    chmodSync(file, 0o755)
    return file
  }
  /** Those that a plain git runs where nobody sits at a terminal. */
  const bites = new Set([
    "fsmonitor",
    "external-diff",
    "text-conversion",
    "diff-command",
    "filter",
    "signing",
    "hooks-elsewhere"
  ])
  const attempt = (...args: ReadonlyArray<string>): void => {
    try {
      git(...args)
    } catch {
      // What was started instead may well have made it fail.
    }
  }
  const ran = (name: string): boolean => existsSync(join(place.workspace, `ran-${name}`))

  const settings: ReadonlyArray<readonly [string, (program: string) => ReadonlyArray<readonly [string, string]>]> = [
    ["fsmonitor", (program) => [["core.fsmonitor", program]]],
    ["pager", (program) => [["core.pager", program]]],
    ["pager-of-diff", (program) => [["pager.diff", program]]],
    ["editor", (program) => [["core.editor", program]]],
    ["external-diff", (program) => [["diff.external", program]]],
    ["text-conversion", (program) => [["diff.evil.textconv", program]]],
    ["diff-command", (program) => [["diff.evil.command", program]]],
    [
      "filter",
      (program) => [
        ["filter.evil.clean", program],
        ["filter.evil.smudge", program]
      ]
    ],
    [
      "filter-process",
      (program) => [
        ["filter.evil.process", program],
        ["filter.evil.required", "true"]
      ]
    ],
    [
      "signing",
      (program) => [
        ["commit.gpgSign", "true"],
        ["gpg.program", program]
      ]
    ],
    ["hooks-elsewhere", (program) => [["core.hooksPath", join(program, "..", "hooks-elsewhere")]]],
    ["alias", (program) => [["alias.status", `!${program}`]]]
  ]

  it.each(settings)("does not run: %s", async (name, of) => {
    const program = trap(name)
    mkdirSync(join(place.workspace, "hooks-elsewhere"))
    for (const hook of ["pre-commit", "post-commit", "commit-msg", "prepare-commit-msg", "post-index-change"]) {
      const file = join(place.workspace, "hooks-elsewhere", hook)
      writeFileSync(file, readFileSync(program))
      chmodSync(file, 0o755)
    }
    put(".gitattributes", "* filter=evil diff=evil\n")
    for (const [key, value] of of(program)) git("config", key, value)
    put("a.txt", "changed\n")
    if (bites.has(name)) {
      // Without our care it does.
      for (const args of [["status"], ["diff"], ["commit", "--all", "--message=x"]]) attempt(...args)
      expect(ran(name)).toBe(true)
      rmSync(join(place.workspace, `ran-${name}`))
      put("a.txt", "changed again\n")
    }
    for (const [tool, input] of [
      ["git_status", {}],
      ["git_diff", {}],
      ["git_diff", { staged: true }],
      ["git_commit", { message: "quietly", paths: ["a.txt"] }]
    ] as const)
      expect(await run(tool, input), tool).toMatchObject({ status: "success" })
    expect(ran(name)).toBe(false)
    expect(git("show", "HEAD:a.txt")).toBe(bites.has(name) ? "changed again\n" : "changed\n")
  })

  it("runs as a hook only when that was asked for", async () => {
    const program = trap("hook")
    const hook = join(place.workspace, ".git", "hooks", "pre-commit")
    mkdirSync(join(place.workspace, ".git", "hooks"), { recursive: true })
    writeFileSync(hook, readFileSync(program))
    chmodSync(hook, 0o755)
    put("a.txt", "changed\n")
    expect(await run("git_commit", { message: "quietly", paths: ["a.txt"] })).toMatchObject({ status: "success" })
    expect(ran("hook")).toBe(false)
    put("a.txt", "changed again\n")
    const outcome = await run("git_commit", { message: "aloud", paths: ["a.txt"], run_hooks: true })
    expect(outcome).toMatchObject({ status: "success" })
    expect(ran("hook")).toBe(true)
  })
})

describe("what the policy is told", () => {
  it("are the paths, and all of the workspace where none are named", () => {
    const { access } = toolNamed("git_diff")
    expect(access({})).toEqual({ reads: ["."], below: true })
    expect(access({ paths: [] })).toEqual({ reads: ["."], below: true })
    expect(access({ paths: ["a.txt"] })).toEqual({ reads: ["a.txt"], below: true })
    expect(toolNamed("git_commit").access({ message: "m", paths: [] })).toEqual({ writes: ["."] })
  })

  it("is that a commit runs programs, when hooks of the repository shall run", () => {
    const { access } = toolNamed("git_commit")
    expect(access({ message: "m", paths: ["a.txt"], run_hooks: false })).toEqual({ writes: ["a.txt"] })
    const withHooks = { writes: ["a.txt"], command: "git commit", stateful: true }
    expect(access({ message: "m", paths: ["a.txt"], run_hooks: true })).toEqual(withHooks)
  })
})

describe("a question about a commit", () => {
  it("shows message, paths and whether hooks run", async () => {
    const preview = await previewOf(
      toolNamed("git_commit"),
      { message: "why", paths: ["a.txt", "b.txt"], run_hooks: true },
      { workspace: place.workspace }
    )
    expect(preview).toEqual({
      title: "git commit",
      detail: "why\n\na.txt\nb.txt\n\nThe hooks of the repository run."
    })
  })
})
