// Goal: whatever a program does, it ends with its whole tree, in time, with its output kept and memory bounded. Method:
// real programs that misbehave, in the sandbox and, for what can be promised there, without one; survivors are looked
// for by a mark that each of them carries in its arguments.
// Verifies: G10
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest"
import { usualReserve } from "#src/sandbox/process/DiskGuard.ts"
import { ProcessNotStarted } from "#src/sandbox/process/ProcessErrors.ts"
import { processLimits } from "#src/sandbox/process/ProcessLimits.ts"
import { sandboxLimits } from "#src/sandbox/SandboxLimits.ts"
import { count, reportCount } from "../../support/counts.ts"
import { requirePart } from "../../support/require.ts"
import { bubblewrap, type Ground, makeGround } from "../../support/sandbox.ts"
import { type World, worlds } from "../../support/worlds.ts"

const newMark = (): string => `77${randomBytes(5).readUIntBE(0, 5)}`

/** Processes whose arguments hold the mark, zombies included. */
const alive = (mark: string): ReadonlyArray<string> =>
  readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .flatMap((name) => {
      try {
        const line = readFileSync(`/proc/${name}/cmdline`, "latin1").replaceAll("\0", " ")
        return line.includes(mark) ? [`${name} ${line}`] : []
      } catch {
        return []
      }
    })

/** Programs that do not want to end, with the mark in everything they start. */
const battery: Readonly<Record<string, (mark: string) => string>> = {
  hangs: (mark) => `sleep ${mark}`,
  "hangs in a loop": (mark) => `: ${mark}; while :; do :; done`,
  "ignores TERM": (mark) => `trap '' TERM INT HUP; while :; do sleep ${mark}; done`,
  "ignores TERM in its children": (mark) => `trap '' TERM; sleep ${mark} & sleep ${mark} & wait; sleep ${mark}`,
  "leaves a child in the background": (mark) => `sleep ${mark} & echo started`,
  "leaves a child that keeps its output": (mark) => `(sleep ${mark} &) ; echo started`,
  "double-forks": (mark) => `( ( sleep ${mark} & ) & ) ; echo started`,
  "leads a session of its own": (mark) => `setsid sleep ${mark} >/dev/null 2>&1 </dev/null & echo started`,
  "double-forks into sessions of their own": (mark) =>
    `(setsid sh -c 'setsid sleep ${mark} & ' >/dev/null 2>&1 &) ; (nohup setsid sleep ${mark} >/dev/null 2>&1 &) ; sleep 0.2`,
  "starts again what is ended": (mark) => `(trap '' TERM; while :; do sleep ${mark}; done) & wait; sleep ${mark}`,
  "stops itself": (mark) => `sleep ${mark} & kill -STOP $!; kill -STOP $$; sleep ${mark}`,
  "closes everything and goes on": (mark) => `exec >/dev/null 2>&1 </dev/null; trap '' TERM HUP; sleep ${mark}`
}

/** Also forgets its environment, by which we would know it outside a namespace. */
const hidden = (mark: string): string =>
  `(env -i setsid sh -c 'setsid sleep ${mark} & sleep ${mark}' >/dev/null 2>&1 &) ; sleep 0.2`

const untilNone = async (mark: string, withinMs: number): Promise<ReadonlyArray<string>> => {
  const end = performance.now() + withinMs
  while (alive(mark).length > 0 && performance.now() < end) await sleep(20)
  return alive(mark)
}

/** What a program runs on in a world, for a test that is left out where there is no such world. */
const groundIn =
  ({ contained, levels }: World, more: Parameters<typeof makeGround>[0] = {}) =>
  (context: Pick<TestContext, "skip">): Promise<Ground> => {
    if (contained) requirePart(context, bubblewrap)
    return makeGround({ ...more, ...(levels === undefined ? {} : { levels }) })
  }

const survivorMs = 2_000
const roundsAtOnce = 5

describe("in the sandbox", () => {
  let ground: Ground

  beforeAll(async () => {
    ground = await makeGround()
  })
  afterAll(() => ground.clear())

  it.for(Object.entries({ ...battery, "forgets its environment": hidden }))(
    "a program that %s leaves nothing behind",
    async ([, script], context) => {
      requirePart(context, bubblewrap)
      const rounds = count("programs that do not want to end", { fast: 5, soak: 80 })
      const round = async (): Promise<void> => {
        const mark = newMark()
        const ended = await ground.run(script(mark), { timeoutMs: 300 })
        expect(["exited", "timeout"]).toContain(ended.end)
        expect(await untilNone(mark, survivorMs)).toEqual([])
      }
      // Some at once: most of what they take is the time they are given to end.
      for (let left = rounds; left > 0; left -= roundsAtOnce)
        await Promise.all(Array.from({ length: Math.min(left, roundsAtOnce) }, round))
      reportCount("misbehaving programs in the sandbox, none alive 2 s later", rounds)
    }
  )

  it("a call that is aborted takes its tree with it, and one aborted before never starts", async (context) => {
    requirePart(context, bubblewrap)
    const mark = newMark()
    const abort = new AbortController()
    const said: Array<string> = []
    const running = ground.run(`echo ready; setsid sleep ${mark} & sleep ${mark}`, {
      signal: abort.signal,
      onOutput: (_, text) => {
        said.push(text)
        abort.abort()
      }
    })
    expect(await running).toMatchObject({ end: "aborted", aborted: true })
    expect(said.join("")).toContain("ready")
    expect(await untilNone(mark, survivorMs)).toEqual([])
    expect(await ground.run("echo no >file", { signal: AbortSignal.abort() })).toMatchObject({
      end: "aborted",
      output: ""
    })
    expect(existsSync(`${ground.workspace}/file`)).toBe(false)
  })

  it("a program may end in good order when it is asked to", async (context) => {
    requirePart(context, bubblewrap)
    const ended = await ground.run("trap 'echo bye; exit 7' TERM; while :; do sleep 0.05; done", { timeoutMs: 400 })
    expect(ended).toMatchObject({ end: "timeout", exit_code: 7 })
    expect(ended.stdout).toContain("bye")
  })

  it("a fork bomb stays inside, and the next command runs at once", async (context) => {
    requirePart(context, bubblewrap)
    const mark = newMark()
    const ended = await ground.run(`bomb() { : ${mark}; bomb | bomb & }; bomb; sleep ${mark}`, { timeoutMs: 1_500 })
    expect(ended.end).toBe("timeout")
    expect(await untilNone(mark, 5_000)).toEqual([])
    expect(await ground.run("echo fine")).toMatchObject({ end: "exited", stdout: "fine\n" })
    reportCount("fork bombs contained", 1)
  })

  it("a sandbox has no more processes than it may", async (context) => {
    requirePart(context, bubblewrap)
    const counting =
      "my $n = 0; while ($n < 2000) { my $p = fork(); last unless defined $p; if (!$p) { sleep 60; exit } $n++ } print $n"
    const made = Number((await ground.run(`perl -e '${counting}'`)).stdout)
    expect(made).toBeGreaterThan(sandboxLimits.processesMax / 2)
    expect(made).toBeLessThan(sandboxLimits.processesMax)
  })

  it("memory, files and private places have their limits", async (context) => {
    requirePart(context, bubblewrap)
    const hog = await ground.run(`perl -e 'my $x = "a" x (5 * 1024 ** 3); print "had it"'`)
    expect(hog.stdout).not.toContain("had it")
    const big = await ground.run(
      `dd if=/dev/zero of=big bs=1M count=1 seek=${sandboxLimits.fileBytesMax / 1_048_576} 2>&1`
    )
    expect(big.exit_code).not.toBe(0)
    const megabytes = sandboxLimits.temporaryBytesMax / 1_048_576 + 1
    for (const place of ["/tmp", "$HOME", "/dev/shm"]) {
      const full = await ground.run(`dd if=/dev/zero of=${place}/big bs=1M count=${megabytes} 2>&1`)
      expect(full.output).toMatch(/No space left/)
    }
    expect((await ground.run("echo x >/dev/new")).exit_code).not.toBe(0)
    rmSync(`${ground.workspace}/big`, { force: true })
    reportCount("memory hogs and disk fillers contained", 5)
  })

  it("has no shared temporary directory between two commands", async (context) => {
    requirePart(context, bubblewrap)
    await ground.run("cd /tmp && echo x >mine; echo y >~/mine")
    expect((await ground.run("ls -A /tmp ~")).stdout).not.toContain("mine")
  })

  it("refuses what cannot be held", async (context) => {
    requirePart(context, bubblewrap)
    for (const root of ["/", "/usr", "/proc/self", "relative", "/nowhere/at/all", "/tmp", ground.data])
      await expect(ground.run("true", { writable: [root] })).rejects.toMatchObject({ _tag: "SandboxRefused" })
    await expect(ground.run("echo \0")).rejects.toMatchObject({ _tag: "SandboxRefused", code: "bad_text" })
  })

  it("tells a program that is not there from a sandbox that failed", async (context) => {
    requirePart(context, bubblewrap)
    expect(await ground.run("true", { argv: ["no-such-program"] })).toMatchObject({ end: "exited", exit_code: 127 })
    const broken = await makeGround({ environment: { PATH: "/bin:/usr/bin", "BAD=NAME": "x" } })
    await expect(broken.run("true")).rejects.toBeInstanceOf(ProcessNotStarted)
    await broken.clear()
  })
})

describe("a program", () => {
  it.for(["", "; exit 1", "; exit 125"])(
    "that speaks like the sandbox runs once and is taken at its word%s",
    async (end, context) => {
      requirePart(context, bubblewrap)
      const ground = await makeGround()
      for (const words of ["bwrap: Can't mount proc", "echs-launcher: mount namespace: no", "vnot what was planned"]) {
        const script = `echo once >>ran; echo "${words}" >&2${end}`
        const ended = await ground.run(script, { timeoutMs: 20_000 })
        expect(ended).toMatchObject({
          end: "exited",
          exit_code: Number(end.match(/\d+/)?.[0] ?? 0),
          stderr: `${words}\n`
        })
        expect(readFileSync(`${ground.workspace}/ran`, "utf8")).toBe("once\n")
        rmSync(`${ground.workspace}/ran`)
      }
      await ground.clear()
    }
  )

  it("finds no descriptor of the sandbox, and cannot let itself in again", async (context) => {
    requirePart(context, bubblewrap)
    const ground = await makeGround()
    const open =
      'for f in /proc/self/fd/* /proc/1/fd/*; do [ "$(basename $f)" -gt 2 ] && readlink $f; done | grep -v "^/proc/\\|eventfd"'
    expect(await ground.run(open, { timeoutMs: 20_000 })).toMatchObject({ end: "exited", stdout: "", stderr: "" })
    await ground.clear()
  })
})

describe.each(worlds)("output of a program $name", (world) => {
  const open = groundIn(world)

  it("over the cap is in a file, whole, and inline by head and tail", async (context) => {
    const ground = await open(context)
    const ended = await ground.run("seq 1 20000; echo err >&2", { outputCharsMax: 1_000 })
    expect(ended.stdout.startsWith("1\n2\n3\n")).toBe(true)
    expect(ended.stdout.endsWith("19999\n20000\n")).toBe(true)
    expect(ended.output).toContain("bytes left out")
    expect(ended.stderr).toBe("err\n")
    const all = readFileSync(ended.overflow?.path ?? "", "utf8")
    expect(all.replace("err\n", "")).toBe(Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join(""))
    expect(ended.overflow).toMatchObject({ bytes: Buffer.byteLength(all), droppedBytes: 0 })
    await ground.clear()
  })

  it("of a program that reads is fed by its input, and ends with it", async (context) => {
    const ground = await open(context)
    const text = "line é\n".repeat(50_000)
    expect(await ground.run("wc -c", { stdin: text })).toMatchObject({ stdout: `${Buffer.byteLength(text)}\n` })
    await expect(ground.run("true", { stdin: "x".repeat(processLimits.stdinBytesMax + 1) })).rejects.toMatchObject({
      code: "too_large"
    })
    expect(await ground.run("true", { stdin: text })).toMatchObject({ exit_code: 0 })
    await ground.clear()
  })

  it("that the disk will not take is dropped and counted", async (context) => {
    const ground = await open(context)
    rmSync(`${ground.base}/overflow`, { recursive: true })
    const ended = await ground.run("seq 1 20000", { outputCharsMax: 1_000 })
    expect(ended).toMatchObject({ exit_code: 0 })
    expect(ended.overflow).toBeUndefined()
    expect(ended.output.endsWith("20000\n")).toBe(true)
    await ground.clear()
  })
})

describe("output without end", () => {
  it("of one GiB costs no memory: head, tail and a bounded file", { timeout: 180_000 }, async () => {
    const ground = await makeGround()
    const before = process.memoryUsage().rss
    let most = before
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss)
    }, 20)
    const bytes = 1_073_741_824
    const told: Array<number> = []
    const ended = await ground.run(`echo first; head -c ${bytes} /dev/zero | tr '\\0' x; echo last`, {
      timeoutMs: 150_000,
      onOutput: (_, text) => void told.push(text.length)
    })
    clearInterval(watch)
    expect(ended.exit_code).toBe(0)
    expect(ended.output.startsWith("first\nxxx")).toBe(true)
    expect(ended.output.endsWith("xxxlast\n")).toBe(true)
    expect(ended.overflow).toMatchObject({
      bytes: processLimits.overflowBytesMax,
      droppedBytes: bytes + "first\nlast\n".length - processLimits.overflowBytesMax
    })
    expect(told.reduce((sum, length) => sum + length, 0)).toBeLessThan(2 * processLimits.progressTotalCharsMax)
    const grownMiB = Math.round((most - before) / 1_048_576)
    expect(grownMiB).toBeLessThanOrEqual(64)
    reportCount("MiB of output from one program", bytes / 1_048_576)
    reportCount("MiB of memory that 1 GiB of output took", grownMiB)
    await ground.clear()
  })
})

describe("a disk", () => {
  it.for(worlds)(
    "is not filled: the program that does so is ended while there is room, $name",
    async (world, context) => {
      const ground = await groundIn(world, { diskReserve: (freeBytes) => freeBytes - 64 * 1_048_576 })(context)
      const filler = "for i in $(seq 1000); do head -c 8M /dev/zero >part$i; sleep 0.02; done"
      expect(await ground.run(filler, { timeoutMs: 60_000 })).toMatchObject({ end: "disk_reserve" })
      expect(await ground.run("rm part*; echo fine")).toMatchObject({ stdout: "fine\n" })
      await ground.clear()
      reportCount("memory hogs and disk fillers contained", 1)
    }
  )

  it("that is nearly full is still of use", () => {
    expect(usualReserve(100 * processLimits.diskReserveBytes)).toBe(processLimits.diskReserveBytes)
    expect(usualReserve(processLimits.diskReserveBytes)).toBe(processLimits.diskReserveBytes / 2)
  })
})

describe.concurrent("without a namespace", () => {
  it.for(Object.entries(battery))("a program that %s leaves nothing behind", async ([, script]) => {
    const ground = await makeGround({ levels: ["limits_only"] })
    expect(ground.sandbox).toMatchObject({ level: "limits_only", contained: false })
    const mark = newMark()
    const ended = await ground.run(script(mark), { timeoutMs: 300 })
    expect(["exited", "timeout"]).toContain(ended.end)
    expect(await untilNone(mark, survivorMs)).toEqual([])
    reportCount("misbehaving programs without a namespace, none alive 2 s later", 1)
    await ground.clear()
  })
})

describe.each(worlds)("the number of programs $name", (world) => {
  it("is bounded, and closing ends them all and refuses more", async (context) => {
    const ground = await groundIn(world)(context)
    const mark = newMark()
    const all = Array.from({ length: 20 }, () => ground.run(`sleep ${mark}`))
    // Before any of them is under way: none may slip through.
    await ground.processes.close()
    for (const ended of await Promise.all(all)) expect(ended).toMatchObject({ end: "aborted", aborted: true })
    expect(await untilNone(mark, survivorMs)).toEqual([])
    await expect(ground.run("true")).rejects.toMatchObject({ _tag: "ProcessNotStarted", code: "closed" })
    await ground.clear()
  })
})

describe("a server that is killed", () => {
  it("takes all programs of the sandbox with it", async (context) => {
    requirePart(context, bubblewrap)
    const rounds = count("servers killed under their programs", { fast: 3, soak: 100 })
    for (let round = 0; round < rounds; round++) {
      const mark = newMark()
      const server = spawn(process.execPath, [fileURLToPath(new URL("./serverChild.ts", import.meta.url)), mark], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      const [base] = (await once(server.stdout, "data")) as [Buffer]
      expect(alive(mark).length).toBeGreaterThan(3)
      server.kill("SIGKILL")
      await once(server, "exit")
      expect(await untilNone(mark, survivorMs)).toEqual([])
      rmSync(base.toString("utf8").trim(), { recursive: true, force: true })
    }
    reportCount("servers killed under their programs, none alive 2 s later", rounds)
  })
})
