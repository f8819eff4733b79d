// Goal: a level is claimed only when it holds, and where nothing holds the sandbox says so. Method: real probes with
// programs missing, broken or lying; what commands write belongs to the owner of the workspace; roots and homes of
// every kind.
import { spawnSync } from "node:child_process"
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { basename, join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { detectSandbox } from "#src/sandbox/Detect.ts"
import { allowedEnvironment } from "#src/sandbox/Environment.ts"
import { rootOf } from "#src/sandbox/Mounts.ts"
import { makeProcesses } from "#src/sandbox/process/Processes.ts"
import { sandboxLimits } from "#src/sandbox/SandboxLimits.ts"
import { parts, requirePart } from "../support/require.ts"
import { bubblewrap, type Ground, makeGround, usualPath } from "../support/sandbox.ts"

let ground: Ground

beforeEach(async () => {
  ground = await makeGround()
})
afterEach(async () => {
  rmSync(bin(), { recursive: true, force: true })
  await ground.clear()
})

const detectWith = (path: string) =>
  detectSandbox({ dataDirectory: ground.data, home: join(ground.base, "home"), path })

/** Not in the temporary directory, which is out of sight where programs of the sandbox begin. */
const bin = (): string => join("/var/tmp", `${basename(ground.base)}-bin`)

const program = (name: string, text: string): string => {
  const directory = bin()
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, name), text, { mode: 0o755 })
  return directory
}

describe("a sandbox", () => {
  it("is bubblewrap with a filter where that works, and says which limits are in force", (context) => {
    requirePart(context, bubblewrap)
    expect(ground.sandbox).toMatchObject({ level: "bubblewrap", contained: true })
    expect(ground.sandbox.limits.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["processes", "memory bytes", "file bytes", "open files", "processor seconds"])
    )
  })

  it("is none that contains anything where bubblewrap is missing", async () => {
    const sandbox = await detectWith(program("nothing", ""))
    expect(sandbox).toMatchObject({ level: "none", contained: false, detail: "bubblewrap is not installed" })
    symlinkSync("/bin/sh", join(bin(), "sh"))
    expect(await detectWith(bin())).toMatchObject({ level: "limits_only", contained: false })
  })

  it("that is none still refuses what is no command and no directory", async () => {
    const other = await makeGround({ levels: ["limits_only"] })
    await expect(other.run("true", { directory: "/nowhere/at/all" })).rejects.toMatchObject({ code: "not_there" })
    await expect(other.run("true", { argv: [] })).rejects.toMatchObject({ code: "bad_text" })
    await other.clear()
  })

  it("is not believed to hold because a program of that name is there", async () => {
    for (const lie of ["#!/bin/sh\nexit 0\n", "#!/bin/sh\nexit 1\n", "not a program"]) {
      const sandbox = await detectWith(`${program("bwrap", lie)}:${usualPath}`)
      expect(sandbox).toMatchObject({ level: "limits_only", contained: false })
    }
  })

  it("is not believed to hold when it starts commands and holds nothing", async () => {
    // Throws its own arguments away and runs the command as it is.
    const lie = '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@" 4<&- 5<&-\n'
    const sandbox = await detectWith(`${program("bwrap", lie)}:${usualPath}`)
    expect(sandbox.contained).toBe(false)
    expect(sandbox.detail).toContain("there is no sandbox")
  })

  it("holds without a filter, too, and calls that by its name", async (context) => {
    requirePart(context, bubblewrap)
    const weaker = await makeGround({ levels: ["bubblewrap_no_seccomp"] })
    expect(weaker.sandbox).toMatchObject({ level: "bubblewrap_no_seccomp", contained: true })
    expect((await weaker.run("unshare -U true")).exit_code).not.toBe(0)
    await weaker.clear()
  })

  it("of a root server that could not drop its rights contains nothing", async (context) => {
    requirePart(context, bubblewrap)
    requirePart(context, parts.root)
    const asRoot = await makeGround({ levels: ["bubblewrap_as_root"] })
    expect(asRoot.sandbox).toMatchObject({ level: "bubblewrap_as_root", contained: false })
    await asRoot.clear()
  })
})

describe("what a command writes", () => {
  it("belongs to the owner of the workspace, whoever that is", async (context) => {
    requirePart(context, bubblewrap)
    requirePart(context, parts.root)
    for (const [uid, gid] of [
      [0, 0],
      [4_321, 4_322],
      [4_321, 0],
      [0, 4_322]
    ] as const) {
      chownSync(ground.workspace, uid, gid)
      const name = `made-${uid}-${gid}`
      writeFileSync(join(ground.workspace, `${name}-before`), "before")
      chownSync(join(ground.workspace, `${name}-before`), uid, gid)
      const ended = await ground.run(`echo x >${name}; mkdir ${name}-directory; echo y >>${name}-before; id -u`)
      expect(ended).toMatchObject({ exit_code: 0, stderr: "" })
      for (const made of [name, `${name}-directory`, `${name}-before`])
        expect(statSync(join(ground.workspace, made))).toMatchObject({ uid, gid })
      expect(Number(ended.stdout)).not.toBe(0)
    }
  })

  it("lands in a workspace that only root can reach", async (context) => {
    requirePart(context, bubblewrap)
    chmodSync(ground.base, 0o700)
    expect(await ground.run("pwd; echo x >file")).toMatchObject({ exit_code: 0, stdout: `${ground.workspace}\n` })
    expect(readFileSync(join(ground.workspace, "file"), "utf8")).toBe("x\n")
  })

  it("lands nowhere when it may only read, and what is there can be read", async (context) => {
    requirePart(context, bubblewrap)
    writeFileSync(join(ground.workspace, "file"), "content", { mode: 0o600 })
    const ended = await ground.run("cat file; echo x >file; echo x >new; pwd", { writable: [] })
    expect(ended.stdout).toBe(`content${ground.workspace}\n`)
    expect(readFileSync(join(ground.workspace, "file"), "utf8")).toBe("content")
    expect(existsSync(join(ground.workspace, "new"))).toBe(false)
  })

  it("never lands in the data of the server, nor is read there", async (context) => {
    requirePart(context, bubblewrap)
    mkdirSync(join(ground.data, "inner"))
    for (const place of [ground.data, join(ground.data, "inner")]) {
      await expect(ground.run("true", { writable: [place] })).rejects.toMatchObject({ code: "too_wide" })
      await expect(ground.run("true", { directory: place, writable: [] })).rejects.toMatchObject({ code: "too_wide" })
    }
  })

  it("lands in each of several roots, and in no other", async (context) => {
    requirePart(context, bubblewrap)
    const other = join(ground.base, "other root")
    mkdirSync(other)
    const script = `echo x >"${other}/file"; echo x >"${ground.base}/file"`
    await ground.run(script, { writable: [ground.workspace, other] })
    expect(existsSync(join(other, "file"))).toBe(true)
    expect(existsSync(join(ground.base, "file"))).toBe(false)
  })
})

describe("a repository", () => {
  it("can be used: commits work, hooks and settings are as they were", async (context) => {
    requirePart(context, bubblewrap)
    const git = (...args: ReadonlyArray<string>) =>
      spawnSync("git", ["-C", ground.workspace, ...args], { encoding: "utf8" })
    expect(git("init", "-q").status).toBe(0)
    const config = readFileSync(join(ground.workspace, ".git/config"), "utf8")
    const identity = "-c user.name=a -c user.email=a@b"
    const ended = await ground.run(
      `echo x >file && git add file && git ${identity} commit -qm one && git log --oneline | wc -l`
    )
    expect(ended).toMatchObject({ exit_code: 0, stdout: "1\n" })
    expect((await ground.run("git config core.hooksPath mine")).exit_code).not.toBe(0)
    expect(readFileSync(join(ground.workspace, ".git/config"), "utf8")).toBe(config)
  })

  it("whose hooks are a link is refused, for they could not be protected", async (context) => {
    requirePart(context, bubblewrap)
    mkdirSync(join(ground.workspace, ".git"))
    symlinkSync("/tmp", join(ground.workspace, ".git/hooks"))
    await expect(ground.run("true")).rejects.toMatchObject({ _tag: "SandboxRefused", code: "link" })
  })

  it("whose Git is led to the settings of another by a command runs nothing of it outside", async (context) => {
    requirePart(context, bubblewrap)
    const git = (...args: ReadonlyArray<string>) =>
      spawnSync("git", ["-C", ground.workspace, ...args], { encoding: "utf8" })
    git("init", "-q")
    await ground.run(
      "mkdir -p evil/objects evil/refs; printf '[core]\\n\\tfsmonitor = touch ran;\\n' >evil/config; echo ../evil >.git/commondir"
    )
    expect(git("status", "--short")).toMatchObject({ status: 0, stderr: "" })
    expect(existsSync(join(ground.workspace, "ran"))).toBe(false)
    expect(git("fsck").status).toBe(0)
  })

  it("that is led to the settings of another already is refused", async (context) => {
    requirePart(context, bubblewrap)
    mkdirSync(join(ground.workspace, ".git"))
    writeFileSync(join(ground.workspace, ".git/commondir"), "../evil\n")
    await expect(ground.run("true")).rejects.toMatchObject({ _tag: "SandboxRefused", code: "led_astray" })
  })

  it("with more submodules than can be protected is refused", async (context) => {
    requirePart(context, bubblewrap)
    for (let index = 0; index <= sandboxLimits.submodulesMax; index++)
      mkdirSync(join(ground.workspace, `.git/modules/libs/${index}`), { recursive: true })
    await expect(ground.run("true")).rejects.toMatchObject({ _tag: "SandboxRefused", code: "too_many" })
  })

  it("has nothing put beside its submodules", async (context) => {
    requirePart(context, bubblewrap)
    const libs = join(ground.workspace, ".git/modules/libs")
    mkdirSync(join(libs, "deep"), { recursive: true })
    writeFileSync(join(libs, "deep", "HEAD"), "ref: refs/heads/main\n")
    expect((await ground.run("echo x >.git/modules/libs/deep/index")).exit_code).toBe(0)
    expect(readdirSync(libs)).toEqual(["deep"])
  })
})

describe("a home", () => {
  it("is no workspace, and neither is what holds it", async (context) => {
    requirePart(context, bubblewrap)
    const home = join(ground.base, "home")
    symlinkSync(home, join(ground.base, "other-name"))
    for (const root of [home, join(ground.base, "other-name"), ground.base])
      await expect(ground.run("true", { directory: root, writable: [root] })).rejects.toMatchObject({
        _tag: "SandboxRefused",
        code: "too_wide"
      })
  })

  it("has directories that are workspaces", async (context) => {
    requirePart(context, bubblewrap)
    const project = join(ground.base, "home", "project")
    mkdirSync(project)
    const ended = await ground.run("echo x >file", { directory: project, writable: [project] })
    expect(ended.exit_code).toBe(0)
    expect(readFileSync(join(project, "file"), "utf8")).toBe("x\n")
  })

  it("of another user is no workspace, whoever runs the server", () => {
    const others = ["/root", ...readdirSync("/home").map((name) => join("/home", name))].filter(
      (path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
    )
    for (const path of others) expect(() => rootOf(path, undefined)).toThrow(/is or holds a home/)
  })
})

describe("the environment of commands", () => {
  it("has names that say how to work, and none that holds a key", async (context) => {
    requirePart(context, bubblewrap)
    const environment = allowedEnvironment({
      PATH: usualPath,
      LC_ALL: "C",
      OPENAI_API_KEY: "secret",
      AWS_SECRET_ACCESS_KEY: "secret",
      SSH_AUTH_SOCK: "/secret",
      LD_PRELOAD: "/secret.so",
      NODE_OPTIONS: "--require=/secret"
    })
    const processes = makeProcesses({ sandbox: ground.sandbox, environment, overflowDirectory: join(ground.base, "o") })
    const { stdout } = await processes.run({
      argv: ["env"],
      directory: ground.workspace,
      writable: [ground.workspace],
      network: false,
      outputCharsMax: 10_000,
      signal: new AbortController().signal
    })
    expect(stdout).toContain("LC_ALL=C")
    expect(stdout).not.toContain("secret")
    await processes.close()
  })
})

describe("the network", () => {
  it("is there when it was granted, and only then", async (context) => {
    requirePart(context, bubblewrap)
    const interfaces = "ls /sys/class/net /proc/net/dev >/dev/null; grep -c : /proc/net/dev"
    const [outside] = [readFileSync("/proc/net/dev", "utf8").split(":").length - 1]
    expect(Number((await ground.run(interfaces, { network: true })).stdout)).toBe(outside)
    expect(Number((await ground.run(interfaces, { network: false })).stdout)).toBe(1)
  })
})
