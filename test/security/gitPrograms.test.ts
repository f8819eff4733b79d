// Goal: no program that a repository names is ever run by the git of this program, whatever its name and wherever it is
// named. Method: hostile repositories, each shown to bite a plain git first; then every git tool and all that the pursuit
// of a goal does with git, where nothing contains them, so that a program that ran would be seen. Each leaves a mark.
import { execFileSync } from "node:child_process"
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { makeGit } from "#src/autonomy/Git.ts"
import { mergeWorktree } from "#src/autonomy/WorktreeMerge.ts"
import { openWorktree, sweepWorktrees, worktreePath } from "#src/autonomy/Worktrees.ts"
import type { AgentId } from "#src/rune/Ids.ts"
import { builtinTools } from "#src/tool/builtin/Builtin.ts"
import type { Input } from "#src/tool/Tool.ts"
import { reportCount } from "../support/counts.ts"
import { requirePart } from "../support/require.ts"
import { bubblewrap, type Ground, makeGround } from "../support/sandbox.ts"
import { runTool } from "../support/tool/runTool.ts"
import { memoryBlobs, usePlace } from "../support/tool/ToolPlace.ts"

const place = usePlace()
const blobs = memoryBlobs()
let ground: Ground
let attempts = 0

beforeAll(async () => {
  ground = await makeGround({ levels: ["limits_only", "none"] })
})
afterAll(async () => {
  await ground.clear()
  reportCount("programs of repositories that git was offered", attempts)
})

const git = (directory: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["-c", "safe.directory=*", "-c", "protocol.file.allow=always", ...args], {
    cwd: directory,
    encoding: "utf8",
    timeout: 20_000,
    stdio: ["ignore", "pipe", "ignore"],
    env: {
      ...{ PATH: process.env["PATH"], HOME: place.outside, GIT_CONFIG_NOSYSTEM: "1" },
      ...{ GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@b.c", GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a@b.c" }
    }
  })

const attempt = (directory: string, ...args: ReadonlyArray<string>): void => {
  try {
    git(directory, ...args)
  } catch {
    // What was started instead may well have made it fail.
  }
}

const put = (path: string, text: string): void => writeFileSync(join(place.workspace, path), text)
const marks = (): ReadonlyArray<string> => readdirSync(join(place.outside, "marks")).sort()
const forget = (): void => {
  for (const name of marks()) rmSync(join(place.outside, "marks", name))
}
const program = (kind: string): string => `sh ${join(place.outside, "trap.sh")} ${kind}`

const configured = (text: string): void => appendFileSync(join(place.workspace, ".git", "config"), text)

const files = ["clean.txt", "process.txt", "command.txt", "textconv.txt", "merge.txt", "plain.txt"]

beforeEach(() => {
  mkdirSync(join(place.outside, "marks"))
  writeFileSync(
    join(place.outside, "trap.sh"),
    `: > "${join(place.outside, "marks")}/$1"\ncase "$1" in clean*|smudge*) cat ;; esac\nexit 0\n`
  )
  git(place.workspace, "init", "--quiet", "--initial-branch=main")
  for (const file of files) put(file, "one\n")
  git(place.workspace, "add", ".")
  git(place.workspace, "commit", "--quiet", "--message=first")
})

const escaped = (name: string): string => name.replaceAll("\\", "\\\\").replaceAll('"', '\\"')

/** The mark of each says what ran, and of which name. */
const driverSettings = (name: string, tag = ""): string => {
  const of = (section: string, ...lines: ReadonlyArray<string>): string =>
    `[${section} "${escaped(name)}"]\n${lines.map((line) => `\t${line}\n`).join("")}`
  return [
    of("filter", `clean = ${program(`clean${tag}`)}`, `smudge = ${program(`smudge${tag}`)}`),
    of("diff", `textconv = ${program(`textconv${tag}`)}`),
    of("merge", `driver = ${program(`merge${tag}`)}`)
  ].join("")
}

const attributes = (name: string, tag = ""): string =>
  `clean${tag}.txt filter=${name}\ntextconv${tag}.txt diff=${name}\nmerge${tag}.txt merge=${name}\n`

const change = (text: string): void => {
  for (const file of files) put(file, text)
}

/** What a plain git runs of it. */
const bitten = (...commands: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  for (const args of commands) attempt(place.workspace, ...args)
  const found = marks()
  forget()
  return found
}

const callTool = async (name: string, input: Input, processes = ground.processes) => {
  const tools = builtinTools({ ownDirectories: [], blobs, processes, path: "", home: place.outside }).tools
  const tool = tools.find((one) => one.name === name)!
  return runTool(tool, input, place.context())
}

const inputs: ReadonlyArray<readonly [string, Input]> = [
  ["git_status", {}],
  ["git_diff", {}],
  ["git_diff", { stat: true }],
  ["git_diff", { from: "HEAD" }],
  ["git_commit", { message: "nothing" }],
  ["git_commit", { message: "one", paths: ["plain.txt", "clean.txt"] }],
  ["git_diff", { staged: true }],
  ["git_commit", { message: "all", all: true }]
]

/** Everything that this program does with git; what it answers is not the point here. */
const useAll = async (tags: ReadonlyArray<string> = [""]): Promise<ReadonlyArray<string>> => {
  const answers: Array<string> = []
  for (const [name, input] of inputs) {
    const { error, status } = await callTool(name, input)
    answers.push(`${name} ${status} ${error?.code ?? ""}`.trim())
  }
  // Nothing contains it, and it is told that something does: so what ran is seen.
  const runner = { contained: true, run: ground.processes.run.bind(ground.processes), ruling: () => ({}) as never }
  const own = makeGit({ runner }, place.workspace, new AbortController().signal)
  const agent = "agt_ann0" as AgentId
  const opened = await openWorktree(own, place.workspace, agent)
  answers.push(`worktree ${opened._tag}`)
  if (opened._tag === "Opened") {
    for (const tag of tags) {
      writeFileSync(join(worktreePath(place.workspace, agent), `merge${tag}.txt`), "theirs again\n")
      writeFileSync(join(worktreePath(place.workspace, agent), `clean${tag}.txt`), "theirs again\n")
      put(`merge${tag}.txt`, "ours again\n")
    }
    await mergeWorktree(own, place.workspace, agent)
    await sweepWorktrees(own, place.workspace, "agt_", [])
  }
  attempts += (inputs.length + 1) * tags.length
  return answers
}

const fine = [
  ...["git_status success", "git_diff success", "git_diff success", "git_diff success"],
  ...["git_commit error nothing_to_commit", "git_commit success", "git_diff success", "git_commit success"],
  "worktree Opened"
]

describe("a driver of filters, differences and merges", () => {
  const names = [
    ...["evil", "a=b", "=", "a=b=c", "a.b", "a=b.c", ".", 'q"uote', "back\\slash", "ümläut", "日本", ""],
    ...["[x]", "#x", ";x", "filter.x.clean", "%(prefix)", "x\u200By"]
  ]
  const tags = names.map((_, index) => `-${index}`)
  const own = tags.flatMap((tag) => [`clean${tag}.txt`, `textconv${tag}.txt`, `merge${tag}.txt`])
  const changeOwn = (text: string): void => {
    for (const file of [...own, ...files]) put(file, text)
  }

  const mergeOfTwo = (): void => {
    attempt(place.workspace, "checkout", "--quiet", "-b", "other")
    changeOwn("theirs\n")
    attempt(place.workspace, "commit", "--quiet", "--all", "--message=theirs")
    attempt(place.workspace, "checkout", "--quiet", "main")
    changeOwn("ours\n")
    attempt(place.workspace, "commit", "--quiet", "--all", "--message=ours")
    attempt(place.workspace, "merge", "other")
    attempt(place.workspace, "reset", "--hard", "main")
  }

  it("does not run, whatever its name", async () => {
    for (const [index, name] of names.entries()) configured(driverSettings(name, tags[index]!))
    put(".gitattributes", names.map((name, index) => attributes(name, tags[index]!)).join(""))
    changeOwn("two\n")
    attempt(place.workspace, "add", ".")
    attempt(place.workspace, "commit", "--quiet", "--message=attributes")
    changeOwn("three\n")
    attempt(place.workspace, "diff")
    mergeOfTwo()
    const kinds = ["clean", "smudge", "textconv", "merge"]
    expect(bitten()).toEqual(kinds.flatMap((kind) => tags.map((tag) => `${kind}${tag}`)).sort())
    changeOwn("four\n")
    expect(await useAll(tags)).toEqual(fine)
    expect(marks()).toEqual([])
  })

  it.each(["command", "process"])("does not run as %s either, required or not", async (kind) => {
    for (const name of ["evil", "a=b", ""]) {
      const section = kind === "command" ? "diff" : "filter"
      const required = kind === "process" ? "\trequired = true\n" : ""
      const text = `[${section} "${name}"]\n\t${kind} = ${program(kind)}\n${required}`
      appendFileSync(join(place.workspace, ".git", "config"), text)
      put(".gitattributes", `${kind}.txt ${section}=${name}\n`)
      change(`two ${name}\n`)
      expect(bitten(["diff"], ["add", "--all"]), name).toEqual([kind])
      change(`three ${name}\n`)
      await useAll()
      expect(marks(), name).toEqual([])
    }
  })

  it("is refused where its name is not UTF-8, and a name that git cannot read is", async () => {
    const config = join(place.workspace, ".git", "config")
    const before = readFileSync(config)
    const latin = Buffer.from(`[filter "\xe9"]\n\tclean = ${program("clean")}\n`, "latin1")
    writeFileSync(config, Buffer.concat([before, latin]))
    writeFileSync(join(place.workspace, ".gitattributes"), Buffer.from("clean.txt filter=\xe9\n", "latin1"))
    change("two\n")
    expect(bitten(["diff"])).toEqual(["clean"])
    change("three\n")
    expect(await callTool("git_status", {})).toMatchObject({ status: "error", error: { code: "git_failed" } })
    await useAll()
    writeFileSync(config, `${before}[filter "a\nb"]\n\tclean = ${program("clean")}\n`)
    expect(await callTool("git_status", {})).toMatchObject({ status: "error", error: { code: "git_failed" } })
    expect(marks()).toEqual([])
  })

  it("is refused where there are more than can be named to git", async () => {
    const many = Array.from({ length: 1_100 }, (_, index) => `[filter "f${index}"]\n\tclean = ${program("clean")}\n`)
    appendFileSync(join(place.workspace, ".git", "config"), many.join(""))
    put(".gitattributes", "clean.txt filter=f1099\n")
    change("two\n")
    const { error } = await callTool("git_diff", {})
    expect(error?.message).toBe("the repository has too many settings that name programs")
    expect(marks()).toEqual([])
  })
})

interface Hostile {
  readonly lay: () => void
  /** Commands of a plain git that it bites; none where git asks for a terminal or a network first. */
  readonly bites: ReadonlyArray<ReadonlyArray<string>>
}

const hookNames = [
  ...["pre-commit", "post-commit", "commit-msg", "prepare-commit-msg", "post-index-change", "post-checkout"],
  ...["reference-transaction", "pre-auto-gc", "fsmonitor-watchman", "post-rewrite", "applypatch-msg", "post-merge"]
]

const hooksIn = (directory: string): void => {
  mkdirSync(directory, { recursive: true })
  for (const name of hookNames)
    writeFileSync(join(directory, name), `#!/bin/sh\n${program(`hook-${name}`)}\n`, { mode: 0o755 })
}

const submodule = (more: string): void => {
  const other = join(place.outside, "other")
  mkdirSync(other)
  git(other, "init", "--quiet")
  writeFileSync(join(other, "clean.txt"), "one\n")
  writeFileSync(join(other, ".gitattributes"), "clean.txt filter=a=b diff=a=b\n")
  git(other, "add", ".")
  git(other, "commit", "--quiet", "--message=first")
  git(place.workspace, "submodule", "--quiet", "add", other, "below")
  git(place.workspace, "config", "--file", ".gitmodules", "submodule.below.ignore", "none")
  git(place.workspace, "commit", "--quiet", "--all", "--message=below")
  appendFileSync(
    join(place.workspace, ".git", "modules", "below", "config"),
    `[filter "a=b"]\n\tclean = ${program("below")}\n[diff "a=b"]\n\tcommand = ${program("below")}\n${more}`
  )
  writeFileSync(join(place.workspace, "below", "clean.txt"), "two\n")
}

const included = (): string => {
  const path = join(place.outside, "included")
  writeFileSync(path, driverSettings("x=y"))
  put(".gitattributes", attributes("x=y"))
  return path
}

const hostile: Readonly<Record<string, Hostile>> = {
  fsmonitor: { lay: () => configured(`[core]\n\tfsmonitor = ${program("fsmonitor")}\n`), bites: [["status"]] },
  "fsmonitor, in capitals": {
    lay: () => configured(`[CORE]\n\tFSMonitor = ${program("fsmonitor")}\n`),
    bites: [["status"]]
  },
  hooks: {
    lay: () => hooksIn(join(place.workspace, ".git", "hooks")),
    bites: [["commit", "--all", "--message=x"]]
  },
  "hooks elsewhere": {
    lay: () => {
      hooksIn(join(place.outside, "hooks"))
      configured(`[core]\n\thooksPath = ${join(place.outside, "hooks")}\n`)
    },
    bites: [["commit", "--all", "--message=x"]]
  },
  "hooks in the settings": {
    lay: () => configured(`[hook "a=b"]\n\tcommand = ${program("hook")}\n\tevent = pre-commit\n`),
    bites: []
  },
  pagers: {
    lay: () =>
      configured(`[core]\n\tpager = ${program("pager")}\n[pager]\n\tdiff = ${program("pager")}\n\tstatus = true\n`),
    bites: []
  },
  "an editor": { lay: () => configured(`[core]\n\teditor = ${program("editor")}\n`), bites: [["commit", "--all"]] },
  "an external difference": {
    lay: () => configured(`[diff]\n\texternal = ${program("external")}\n`),
    bites: [["diff"]]
  },
  signing: {
    lay: () => {
      // Started without a shell, so it is one word.
      const path = join(place.outside, "gpg")
      writeFileSync(path, `#!/bin/sh\n${program("gpg")}\n`, { mode: 0o755 })
      configured(`[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = ${path}\n`)
    },
    bites: [["commit", "--all", "--message=x"]]
  },
  "signing in other ways": {
    lay: () =>
      configured(
        `[commit]\n\tgpgSign = true\n[gpg]\n\tformat = ssh\n[gpg "ssh"]\n\tdefaultKeyCommand = ${program("gpg")}\n\tprogram = ${program("gpg")}\n`
      ),
    bites: [["commit", "--all", "--message=x"]]
  },
  "a submodule": { lay: () => submodule(""), bites: [["status"]] },
  "a submodule with a monitor": {
    lay: () => submodule(`[core]\n\tfsmonitor = ${program("below")}\n`),
    bites: [["status"]]
  },
  "differences of a submodule": {
    lay: () => {
      submodule("")
      configured("[diff]\n\tsubmodule = diff\n")
    },
    bites: [["diff"]]
  },
  "an included file": { lay: () => configured(`[include]\n\tpath = ${included()}\n`), bites: [["diff"]] },
  "a file included on a branch": {
    lay: () => configured(`[includeIf "onbranch:main"]\n\tpath = ${included()}\n`),
    bites: [["diff"]]
  },
  "a file included in worktrees": {
    lay: () => configured(`[includeIf "gitdir:**/worktrees/**"]\n\tpath = ${included()}\n`),
    bites: [
      ["add", ".gitattributes"],
      ["commit", "--quiet", "--message=attributes"],
      ["worktree", "add", "--quiet", "-f", "--detach", "tree"],
      ["worktree", "remove", "--force", "tree"]
    ]
  },
  "settings of the worktree": {
    lay: () => {
      git(place.workspace, "config", "extensions.worktreeConfig", "true")
      writeFileSync(join(place.workspace, ".git", "config.worktree"), driverSettings("w=t"))
      put(".gitattributes", attributes("w=t"))
    },
    bites: [["diff"]]
  },
  "attributes of the repository alone": {
    lay: () => {
      configured(driverSettings("i=a"))
      mkdirSync(join(place.workspace, ".git", "info"), { recursive: true })
      writeFileSync(join(place.workspace, ".git", "info", "attributes"), attributes("i=a"))
    },
    bites: [["diff"]]
  },
  "objects fetched when they are missing": {
    lay: () => {
      configured(
        `[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\tpromisor = true\n\turl = ext::${program("fetch")}\n[protocol "ext"]\n\tallow = always\n[protocol]\n\tallow = always\n`
      )
      const id = git(place.workspace, "rev-parse", "HEAD:plain.txt").trim()
      rmSync(join(place.workspace, ".git", "objects", id.slice(0, 2), id.slice(2)))
    },
    bites: [["cat-file", "-p", "HEAD:plain.txt"]]
  },
  alternates: {
    lay: () => {
      const other = join(place.outside, "alternate")
      mkdirSync(other)
      git(other, "init", "--quiet")
      configured(`[core]\n\talternateRefsCommand = ${program("alternates")}\n`)
      writeFileSync(
        join(place.workspace, ".git", "objects", "info", "alternates"),
        `${join(other, ".git", "objects")}\n`
      )
    },
    bites: []
  },
  "helpers and ways to other machines": {
    lay: () =>
      configured(
        `[credential]\n\thelper = !${program("helper")}\n[credential "https://a=b"]\n\thelper = !${program("helper")}\n[core]\n\tsshCommand = ${program("ssh")}\n\tgitProxy = ${program("proxy")}\n\taskPass = ${program("ask")}\n[remote "origin"]\n\turl = ssh://localhost/x\n\tvcs = x\n\tuploadpack = ${program("pack")}\n`
      ),
    bites: []
  },
  aliases: { lay: () => configured(`[alias]\n\tstatus = !${program("alias")}\n\tdiff = !x\n`), bites: [] },
  "lines at the end of a message": {
    lay: () => configured(`[trailer "a=b"]\n\tkey = X\n\tifmissing = add\n\tcmd = ${program("trailer")}\n`),
    bites: []
  }
}

describe("what a repository can name besides", () => {
  it.each(Object.entries(hostile))("does not run: %s", async (_name, { bites, lay }) => {
    lay()
    change("two\n")
    if (bites.length > 0) expect(bitten(...bites), "a plain git is bitten").not.toEqual([])
    change("four\n")
    await useAll()
    expect(marks()).toEqual([])
  })

  it("keeps nobody from working: the tools answer as usual", async () => {
    submodule(`[core]\n\tfsmonitor = ${program("below")}\n`)
    for (const name of ["hooks", "an external difference", "signing", "fsmonitor", "aliases"]) hostile[name]!.lay()
    change("four\n")
    expect(await useAll()).toEqual(fine)
    expect(marks()).toEqual([])
  })

  it("a submodule that is at another commit is shown and committed", async () => {
    submodule("")
    rmSync(join(place.workspace, ".git", "modules", "below", "config"))
    git(join(place.outside, "other"), "config", "core.bare", "false")
    writeFileSync(
      join(place.workspace, ".git", "modules", "below", "config"),
      "[core]\n\tbare = false\n\tworktree = ../../../below\n"
    )
    git(join(place.workspace, "below"), "commit", "--quiet", "--all", "--message=second")
    const head = git(join(place.workspace, "below"), "rev-parse", "HEAD").trim()
    expect((await callTool("git_status", {})).output).toContain(" M below\n")
    expect((await callTool("git_diff", {})).output).toContain(`+Subproject commit ${head}\n`)
    expect(await callTool("git_commit", { message: "below", paths: ["below"] })).toMatchObject({ status: "success" })
    expect(git(place.workspace, "rev-parse", "HEAD:below").trim()).toBe(head)
  })
})

describe("a tool that reads", () => {
  it("may write nothing, also not what it is made to run", async (context) => {
    requirePart(context, bubblewrap)
    const held = await makeGround()
    try {
      const writable: Array<ReadonlyArray<string>> = []
      const processes = {
        ...held.processes,
        run: (request: Parameters<typeof held.processes.run>[0]) => {
          writable.push(request.writable)
          return held.processes.run(request)
        }
      }
      change("two\n")
      const before = statSync(join(place.workspace, ".git", "index"), { bigint: true }).mtimeNs
      for (const [name, input] of inputs.slice(0, 4)) await callTool(name, input, processes as never)
      expect(writable.flat()).toEqual([])
      expect(statSync(join(place.workspace, ".git", "index"), { bigint: true }).mtimeNs).toBe(before)
      expect(existsSync(join(place.workspace, ".git", "commondir"))).toBe(false)
    } finally {
      await held.clear()
    }
  })

  it("tells nothing of a repository beyond the workspace, whatever its settings call the work tree", async () => {
    mkdirSync(join(place.workspace, "part"))
    writeFileSync(join(place.workspace, "part", "inside.txt"), "inside\n")
    change("secret\n")
    const part = { ...place.context(), workspace: join(place.workspace, "part") }
    const tools = builtinTools({
      ...{ ownDirectories: [], blobs, processes: ground.processes, path: "", home: place.outside }
    }).tools
    const ask = (name: string, input: Input) => runTool(tools.find((tool) => tool.name === name)!, input, part)
    expect((await ask("git_status", {})).output).toBe("## main\n?? inside.txt\n")
    expect((await ask("git_diff", {})).output).toBe("no differences")
    for (const path of ["../plain.txt", "/etc/passwd", "x/../../plain.txt"]) {
      const outcome = await ask("git_diff", { paths: [path] })
      expect(outcome, path).toMatchObject({ status: "sandbox_violation", error: { code: "outside_workspace" } })
    }
    expect(await ask("git_commit", { message: "x", paths: ["../plain.txt"] })).toMatchObject({
      status: "sandbox_violation"
    })
    configured(`[core]\n\tworktree = ${place.outside}\n`)
    writeFileSync(join(place.outside, "secret.txt"), "secret\n")
    expect((await callTool("git_status", {})).output).not.toContain("secret")
    expect((await callTool("git_diff", {})).output).not.toContain("secret.txt")
  })
})

describe("the source", () => {
  it("starts git in one place", () => {
    const root = join(import.meta.dirname, "..", "..", "src")
    const paths = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"))
    const starts = paths.filter((path) =>
      /(argv|spawn|exec)\S*[^\n]*["'`]git["'`]/u.test(readFileSync(join(root, path), "utf8"))
    )
    expect(starts).toEqual(["tool/git/QuietGit.ts"])
  })
})

describe("a repository that lies outside of the workspace", () => {
  interface Outer {
    readonly workspace: string
    /** Where its settings and hooks lie. */
    readonly common: string
    /** Where settings of the workspace alone lie, if anywhere else. */
    readonly own?: string
  }

  const outers: Readonly<Record<string, () => Outer>> = {
    "of a package": () => {
      const workspace = join(place.workspace, "pkg")
      mkdirSync(workspace)
      for (const file of files) put(`pkg/${file}`, "one\n")
      git(place.workspace, "add", ".")
      git(place.workspace, "commit", "--quiet", "--message=package")
      return { workspace, common: join(place.workspace, ".git") }
    },
    "of a linked worktree": () => {
      const workspace = join(place.outside, "linked")
      git(place.workspace, "worktree", "add", "--quiet", "-b", "side", workspace)
      const common = join(place.workspace, ".git")
      return { workspace, common, own: join(common, "worktrees", "linked") }
    },
    "of a submodule": () => {
      const above = join(place.outside, "above")
      mkdirSync(above)
      git(above, "init", "--quiet")
      git(above, "submodule", "--quiet", "add", place.workspace, "below")
      return { workspace: join(above, "below"), common: join(above, ".git", "modules", "below") }
    }
  }

  const lay = ({ common, own, workspace }: Outer): void => {
    hooksIn(join(common, "hooks"))
    const monitor = `[core]\n\tfsmonitor = ${program("fsmonitor")}\n`
    const more = own === undefined ? monitor : "[extensions]\n\tworktreeConfig = true\n"
    appendFileSync(join(common, "config"), `${driverSettings("a=b")}${driverSettings("evil")}${more}`)
    if (own !== undefined) writeFileSync(join(own, "config.worktree"), monitor)
    mkdirSync(join(common, "info"), { recursive: true })
    writeFileSync(join(common, "info", "attributes"), attributes("a=b"))
    writeFileSync(join(workspace, ".gitattributes"), attributes("evil"))
  }

  it.each(Object.entries(outers))("runs nothing: %s", async (_, make) => {
    const outer = make()
    const { workspace } = outer
    lay(outer)
    const write = (text: string): void => {
      for (const file of files) writeFileSync(join(workspace, file), text)
    }
    write("two\n")
    for (const args of [["status"], ["diff"], ["commit", "--all", "--message=bitten"]]) attempt(workspace, ...args)
    expect(marks()).toEqual(expect.arrayContaining(["clean", "fsmonitor", "hook-pre-commit", "textconv"]))
    forget()
    write("three\n")
    const tools = builtinTools({
      ownDirectories: [],
      blobs,
      processes: ground.processes,
      path: "",
      home: place.outside
    }).tools
    const said: Array<string> = []
    for (const [name, input] of inputs) {
      const tool = tools.find((one) => one.name === name)!
      const { error, status } = await runTool(tool, input, { ...place.context(), workspace })
      said.push(`${name} ${status} ${error?.code ?? ""}`.trim())
    }
    expect(said).toEqual(fine.slice(0, -1))
    const runner = { contained: true, run: ground.processes.run.bind(ground.processes), ruling: () => ({}) as never }
    const own = makeGit({ runner }, workspace, new AbortController().signal)
    const agent = "agt_ann0" as AgentId
    const opened = await openWorktree(own, workspace, agent)
    if (opened._tag === "Opened") {
      writeFileSync(join(worktreePath(workspace, agent), "merge.txt"), "theirs\n")
      writeFileSync(join(workspace, "merge.txt"), "ours\n")
      await mergeWorktree(own, workspace, agent)
      await sweepWorktrees(own, workspace, "agt_", [])
    }
    expect(marks()).toEqual([])
    attempts += inputs.length + 1
  })
})
