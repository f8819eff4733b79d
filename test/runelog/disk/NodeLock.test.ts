// Goal: one writer per directory, whatever happens to it. Method: real processes that race for a directory and are
// killed, lock files that name the living, the dead and the reborn, and namespaces that hide the holder.
// Verifies: one writer per data directory; takeover needs no timeout.
// Verifies: G4

import { type ChildProcess, execFileSync, fork, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as net from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { LockOutcome, LockOwner } from "#runelog/disk/Disk.ts"
import {
  guardFileName,
  guardPathBytesMax,
  linuxProcesses,
  lockFileName,
  makeNodeLock,
  type NodeLockOptions,
  parseStartTicks,
  portableProcesses,
  readOwner
} from "#runelog/disk/NodeLock.ts"
import { count, reportCount } from "../../support/counts.ts"
import { type Part, programRuns, requirePart } from "../../support/require.ts"

const childScript = join(import.meta.dirname, "lockChild.ts")
const onLinux = process.platform === "linux"

const linux: Part = { name: "Linux", isThere: () => onLinux, remedy: "run the tests on Linux" }
const namespaces: Part = {
  name: "namespaces",
  isThere: () => programRuns("unshare", ["--net", "--pid", "--fork", "--mount-proc", "true"]),
  remedy: "run the tests as root on Linux, with unshare (util-linux)"
}

interface Answer {
  readonly held?: boolean
  readonly owner?: number
}

let directory: string
const children = new Set<ChildProcess>()

beforeEach(() => {
  directory = fs.mkdtempSync(join(tmpdir(), "runelog-lock-"))
})

afterEach(async () => {
  for (const child of children) await kill(child)
  fs.rmSync(directory, { recursive: true, force: true })
})

const nextAnswer = (child: ChildProcess): Promise<Answer> =>
  new Promise((resolve) => child.once("message", (answer) => resolve(answer as Answer)))

const ask = (child: ChildProcess, message: "try" | "release"): Promise<Answer> => {
  const answer = nextAnswer(child)
  child.send(message)
  return answer
}

const startChild = async (): Promise<ChildProcess> => {
  const child = fork(childScript, [directory], { execArgv: [] })
  children.add(child)
  await nextAnswer(child)
  return child
}

const kill = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    children.delete(child)
    child.once("exit", () => resolve())
    child.kill("SIGKILL")
  })

const lockPath = () => join(directory, lockFileName)

const writeLock = (owner: unknown) => fs.writeFileSync(lockPath(), JSON.stringify(owner))

const take = (options?: NodeLockOptions) => makeNodeLock(options)(directory)

const release = async (outcome: LockOutcome) => {
  if (outcome._tag === "Acquired") await outcome.lock.release()
}

/** Takes the lock, checks that it could, and gives it back. */
const expectFree = async (options?: NodeLockOptions) => {
  const outcome = await take(options)
  expect(outcome._tag).toBe("Acquired")
  await release(outcome)
}

/** A process that is neither ours nor a holder, and what a lock file would say of it. */
const startBystander = (): { readonly child: ChildProcess; readonly owner: LockOwner } => {
  const child = spawn("sleep", ["60"])
  children.add(child)
  const stat = fs.readFileSync(`/proc/${child.pid}/stat`, "utf8")
  return { child, owner: { ...linuxProcesses().self(), pid: child.pid!, startTicks: parseStartTicks(stat)! } }
}

describe("processes that race", () => {
  it("have exactly one winner each time, and the winner's name is known", async () => {
    const racers = await Promise.all([1, 2, 3].map(startChild))
    const rounds = count("lock races", { fast: 200, soak: 1000 })
    for (let round = 0; round < rounds; round++) {
      const answers = await Promise.all(racers.map((racer) => ask(racer, "try")))
      const winners = racers.filter((_racer, index) => answers[index]!.held)
      expect(winners).toHaveLength(1)
      const late = await ask(racers.find((racer) => racer !== winners[0])!, "try")
      expect(late).toEqual({ held: false, owner: winners[0]!.pid })
      await ask(winners[0]!, "release")
    }
    reportCount("lock races between three processes, one winner each", rounds)
  })

  it("get the directory at once when the holder is killed", async () => {
    let holder = await startChild()
    expect((await ask(holder, "try")).held).toBe(true)
    const kills = count("holders killed", { fast: 10, soak: 100 })
    for (let round = 0; round < kills; round++) {
      const [one, two] = await Promise.all([startChild(), startChild()])
      expect((await ask(one, "try")).held).toBe(false)
      await kill(holder)
      const answers = await Promise.all([one, two].map((racer) => ask(racer, "try")))
      expect(answers.filter((answer) => answer.held)).toHaveLength(1)
      holder = answers[0]!.held ? one : two
      await kill(holder === one ? two : one)
    }
    reportCount("lock holders killed, directory free at once", kills)
  })
})

describe("the lock file", () => {
  it("says who holds the directory, for its owner's eyes, and goes away with the lock", async () => {
    const outcome = await take()
    expect(readOwner(lockPath())).toMatchObject({ pid: process.pid })
    expect(fs.statSync(lockPath()).mode & 0o777).toBe(0o600)
    expect(fs.statSync(join(directory, guardFileName)).mode & 0o777).toBe(0o600)
    await release(outcome)
    expect(fs.existsSync(lockPath())).toBe(false)
  })

  it("names a process that runs: held", async (context) => {
    requirePart(context, linux)
    const { child, owner } = startBystander()
    writeLock(owner)
    expect(await take()).toEqual({ _tag: "Held", owner })
    expect(readOwner(lockPath())).toEqual(owner)
    await kill(child)
    await expectFree()
  })

  it("names a process whose id was taken by another: stale", async (context) => {
    requirePart(context, linux)
    const { owner } = startBystander()
    writeLock({ ...owner, startTicks: String(Number(owner.startTicks) - 1) })
    await expectFree()
  })

  it("comes from before the last boot: stale", async (context) => {
    requirePart(context, linux)
    writeLock({ ...startBystander().owner, bootId: "00000000-0000-0000-0000-000000000000" })
    await expectFree()
  })

  it("names ourselves although the kernel let us in: a leftover", async () => {
    const processes = onLinux ? linuxProcesses() : portableProcesses()
    writeLock(processes.self())
    await expectFree()
  })

  it.each([
    ["empty", ""],
    ["torn", '{"pid":12,"start'],
    ["something else", '"lock"'],
    ["null", "null"],
    ["without a start time", '{"pid":1,"bootId":""}'],
    ["without a boot", '{"pid":1,"startTicks":""}'],
    ["with a boot that is no text", '{"pid":1,"startTicks":"1","bootId":4}'],
    ["with a start that is no text", '{"pid":1,"startTicks":1,"bootId":""}'],
    ["with a process that is no number", '{"pid":"1","startTicks":"1","bootId":""}'],
    ["without a process", '{"startTicks":"1","bootId":""}']
  ])("is %s: stale", async (_what, text) => {
    fs.writeFileSync(lockPath(), text)
    expect(readOwner(lockPath())).toBeUndefined()
    await expectFree()
  })

  it("cannot be read: the error tells", () => {
    fs.writeFileSync(lockPath(), "")
    expect(() => readOwner(join(lockPath(), "below"))).toThrow("ENOTDIR")
  })

  it("is not a file: the error tells, and nothing stays locked", async () => {
    fs.mkdirSync(lockPath())
    await expect(take()).rejects.toEqual(expect.objectContaining({ code: "EISDIR" }))
    fs.rmdirSync(lockPath())
    await expectFree()
  })

  it("is left alone by the release when it names somebody else by then", async () => {
    const outcome = await take()
    const other = { pid: 1, startTicks: "1", bootId: "x" }
    writeLock(other)
    await release(outcome)
    expect(readOwner(lockPath())).toEqual(other)
  })

  it("does not name a dead process as the holder", async () => {
    const outcome = await take()
    writeLock({ pid: 1, startTicks: "1", bootId: "long ago" })
    expect(await take({ processes: { ...portableProcesses(), isAlive: () => false } })).toEqual({
      _tag: "Held",
      owner: undefined
    })
    await release(outcome)
  })

  it("cannot be made in a directory that takes no files", async (context) => {
    requirePart(context, linux)
    for (const options of [{}, { loadSqlite: () => undefined }]) {
      const attempt = makeNodeLock(options)("/proc")
      await expect(attempt).rejects.toEqual(expect.objectContaining({ code: expect.stringMatching(/^E[A-Z]+$/) }))
    }
  })

  it("is refused by name where the path is too long for the guard", async () => {
    const named = (length: number) => {
      let path = fs.realpathSync(directory)
      while (path.length < length - 101) path = join(path, "d".repeat(100))
      path = join(path, "d".repeat(length - path.length - 1))
      fs.mkdirSync(path, { recursive: true })
      return path
    }
    const longest = guardPathBytesMax - guardFileName.length - 1
    const outcome = await makeNodeLock()(named(longest))
    expect(outcome._tag).toBe("Acquired")
    await release(outcome)
    await expect(makeNodeLock()(named(longest + 1))).rejects.toEqual(expect.objectContaining({ code: "ENAMETOOLONG" }))
  })
})

describe("the claims of the kernel", () => {
  it("hold on one another's behalf across network and process namespaces", async (context) => {
    requirePart(context, namespaces)
    const inNamespaces = (): Answer =>
      JSON.parse(
        execFileSync(
          "unshare",
          ["--net", "--pid", "--fork", "--mount-proc", process.execPath, childScript, directory],
          { encoding: "utf8" }
        )
      )
    const outcome = await take()
    expect(inNamespaces().held).toBe(false)
    await release(outcome)
    expect(inNamespaces().held).toBe(true)
    // That process is gone, and its lock file speaks of a process id that means another process here.
    await expectFree()
  })

  it("are gone with the namespaces of a killed holder", async (context) => {
    requirePart(context, namespaces)
    const child = fork(childScript, [directory], {
      execPath: "unshare",
      execArgv: ["--net", "--pid", "--fork", "--kill-child", "--mount-proc", process.execPath]
    })
    children.add(child)
    await nextAnswer(child)
    expect((await ask(child, "try")).held).toBe(true)
    expect((await take())._tag).toBe("Held")
    await kill(child)
    await expect.poll(async () => (await take())._tag, { timeout: 10_000, interval: 5 }).toBe("Acquired")
  })

  it("refuse when only the file knows: no socket on this platform", async () => {
    const holder = await take({ platform: "darwin" })
    expect(holder._tag).toBe("Acquired")
    expect((await take({ platform: "darwin" }))._tag).toBe("Held")
    expect((await take({ platform: "darwin" }))._tag).toBe("Held")
    await release(holder)
    await expectFree({ platform: "darwin" })
  })

  it("refuse when only the socket knows: no SQLite in this Node", async (context) => {
    requirePart(context, linux)
    const options = { loadSqlite: () => undefined }
    const holder = await take(options)
    expect((await take(options))._tag).toBe("Held")
    expect(fs.existsSync(join(directory, guardFileName))).toBe(false)
    await release(holder)
    await expectFree(options)
  })

  it("of a removed directory do not stick to the one that gets its inode", async () => {
    for (let round = 0; round < 50; round++) {
      const short = fs.mkdtempSync(join(directory, "short-lived-"))
      expect((await makeNodeLock()(short))._tag).toBe("Acquired")
      fs.rmSync(short, { recursive: true })
    }
  })

  it("know a directory by each of its names", async () => {
    const alias = join(directory, "alias")
    fs.symlinkSync(directory, alias)
    const outcome = await take()
    expect((await makeNodeLock()(alias))._tag).toBe("Held")
    await release(outcome)
  })

  it("are not lost when the holder forgets its lock", async () => {
    setFlagsFromString("--expose-gc")
    const collect: () => void = runInNewContext("gc")
    await take({ platform: "darwin" })
    for (let round = 0; round < 5; round++) {
      collect()
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect((await take({ platform: "darwin" }))._tag).toBe("Held")
  })

  it("close at once what connects to the socket", async (context) => {
    requirePart(context, linux)
    let listening: net.Server | undefined
    const outcome = await take({
      createServer: ((listener: (socket: net.Socket) => void) => {
        listening = net.createServer(listener)
        return listening
      }) as typeof net.createServer
    })
    const socket = net.connect({ path: listening!.address() as string })
    await new Promise((resolve) => socket.once("close", resolve))
    await release(outcome)
  })

  it("tell when the socket cannot be made", async () => {
    const createServer = (() => {
      const server = net.createServer()
      server.listen = () => {
        queueMicrotask(() => server.emit("error", Object.assign(new Error("denied"), { code: "EPERM" })))
        return server
      }
      return server
    }) as typeof net.createServer
    await expect(take({ platform: "linux", createServer })).rejects.toEqual(expect.objectContaining({ code: "EPERM" }))
    await expectFree()
  })

  it("tell when the guard file is something else, and let go of the rest", async () => {
    const guard = join(directory, guardFileName)
    fs.writeFileSync(guard, "not what it was".repeat(100))
    await expect(take()).rejects.toThrow(/not a database/)
    fs.rmSync(guard)
    await expectFree()
  })
})

describe("without any claim of the kernel", () => {
  const bare = { platform: "darwin", loadSqlite: () => undefined } as const

  it("knows the directory as held by ourselves", async () => {
    const holder = await take(bare)
    expect(await take(bare)).toEqual({ _tag: "Held", owner: portableProcesses().self() })
    await release(holder)
    await expectFree(bare)
  })

  it("goes by whether the process in the lock file runs", async () => {
    const child = spawn("sleep", ["60"])
    children.add(child)
    const owner = { pid: child.pid!, startTicks: "1", bootId: "" }
    writeLock(owner)
    expect(await take(bare)).toEqual({ _tag: "Held", owner })
    await kill(child)
    await expectFree(bare)
  })
})

describe("processes", () => {
  it("have their start time behind a name that may hold anything", () => {
    const rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21"
    expect(parseStartTicks(`77 (node) ${rest}`)).toBe("4242")
    expect(parseStartTicks(`77 (a) S 1 (b) ${rest}`)).toBe("4242")
    expect(parseStartTicks(`77 (node) ${rest.replace("S", "Z")}`)).toBeUndefined()
  })

  it("are alive until they end, even if nobody has taken note of their end", async (context) => {
    requirePart(context, linux)
    const { child, owner } = startBystander()
    expect(linuxProcesses().isAlive(owner)).toBe(true)
    await kill(child)
    expect(linuxProcesses().isAlive(owner)).toBe(false)
    // A parent that never waits: the child it started stays behind as a zombie.
    const parent = spawn("sh", ["-c", "true & exec sleep 60"])
    children.add(parent)
    const zombie = () => fs.readFileSync(`/proc/${parent.pid}/task/${parent.pid}/children`, "utf8").trim()
    const stateOf = (pid: string) => fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!
    await expect.poll(() => zombie() !== "" && stateOf(zombie())[0], { timeout: 10_000, interval: 5 }).toBe("Z")
    const startTicks = stateOf(zombie()).split(" ")[19]!
    expect(linuxProcesses().isAlive({ ...owner, pid: Number(zombie()), startTicks })).toBe(false)
  })

  it("cannot be judged where /proc is not there: nobody is alive", () => {
    const processes = linuxProcesses(directory)
    expect(processes.self()).toEqual({ pid: process.pid, startTicks: "", bootId: "" })
    expect(processes.isAlive(processes.self())).toBe(false)
  })

  it("of other users count as running where only signals can tell", () => {
    const failing = (code: string) =>
      portableProcesses(() => {
        throw Object.assign(new Error(code), { code })
      })
    const owner = { pid: 1, startTicks: "", bootId: "" }
    expect(failing("EPERM").isAlive(owner)).toBe(true)
    expect(failing("ESRCH").isAlive(owner)).toBe(false)
    expect(portableProcesses().isAlive({ ...owner, pid: process.pid })).toBe(true)
  })
})
