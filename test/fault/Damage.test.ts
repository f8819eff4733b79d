// Goal: `echs verify` names every damage and never cries wolf, and `echs repair` leaves what it says. Method: a data
// directory with live, closed, archived and blob-carrying conversations on a disk in memory; one thing in it is damaged
// at random, hundreds of times; undamaged ones after a clean stop, a kill and a power cut must be sound.
// Verifies: INV-CRC-VALID, INV-SEGMENT-CONTIGUOUS
import { mkdtempSync, rmSync } from "node:fs"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import type { Disk } from "#runelog/disk/Disk.ts"
import { evolve } from "#src/machine/evolve/Evolve.ts"
import { repairData } from "#src/main/RepairData.ts"
import { verifyData } from "#src/main/VerifyData.ts"
import { diskOf, type Snapshot, snapshotOf } from "../runelog/Fixture.ts"
import { agent, KIB, Scribe, smallLimits } from "../store/support.ts"
import { count, reportCount } from "../support/counts.ts"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"
import { DiskSim } from "../support/disk/DiskSim.ts"
import { randomFrom, seedFor } from "../support/seed.ts"
import { type OpenStore, openStore } from "../support/store/openStore.ts"

const directory = "/data"
const options = {
  directory,
  snapshotShape: "1",
  runelog: { limits: { ...smallLimits, segmentBytes: 8 * KIB } }
}

const append = async (store: OpenStore, scribe: Scribe): Promise<void> => {
  const from = (await store.runes.headNow(scribe.conversationId)) as number
  for (const rune of scribe.runes.slice(from)) await store.runes.appendNow(scribe.conversationId, [rune])
}

const withBlob = async (store: OpenStore, number: number): Promise<Scribe> => {
  const scribe = new Scribe(number).begin().turn()
  const output = `${number} `.repeat(3000)
  const blob = await store.blobs.put(output)
  const place = scribe.startTurn("again")
  scribe.answer(place, "so be it", 2)
  const callId = scribe.call(place, "kept elsewhere", 0)
  const { payload } = scribe.runes.pop() as { readonly payload: object }
  scribe.add("tool.result", { ...payload, call_id: callId, output_blob: blob } as never, place)
  scribe.answer(place, "done", 1)
  scribe.endTurn(place, "done")
  return scribe
}

const closed = (scribe: Scribe): Scribe => {
  const stats = { turns: 1, tool_calls: 1, usage: { input_tokens: 0, output_tokens: 0 }, retries: 0, wall_ms: 1 }
  scribe.add("agent.terminated", { agent_id: agent, reason: "closed", stats }, { agent_id: agent })
  return scribe.close()
}

/** Live, closed and sealed, archived, with blobs here and there. */
const fill = async (store: OpenStore): Promise<void> => {
  for (const number of [1, 2, 3]) {
    const scribe = new Scribe(number).begin()
    for (let turn = 0; turn < 3 * number; turn++) scribe.turn()
    await append(store, scribe)
  }
  await append(store, await withBlob(store, 4))
  for (const number of [5, 6]) {
    const scribe = closed(new Scribe(number).begin().turn())
    await append(store, scribe)
    await store.runelog.seal(scribe.conversationId)
  }
  for (const scribe of [closed(new Scribe(7).begin().turn().turn()), closed(await withBlob(store, 8))]) {
    await append(store, scribe)
    const prepared = await store.archive.prepare(scribe.conversationId)
    await store.runes.appendNow(scribe.conversationId, [scribe.add("session.archived", prepared)])
    await store.archive.commit(scribe.conversationId)
  }
}

const problemsOf = async (disk: Disk) => (await verifyData(directory, { disk })).problems

describe("a data directory that nobody damaged is sound", () => {
  it("after a clean stop, a kill and a stop in between", async () => {
    const disk = makeDiskMemory()
    const store = await openStore({ ...options, disk })
    await fill(store)
    expect(await problemsOf(await diskOf(await snapshotOf(disk)))).toEqual([])
    await store.close()
    expect(await verifyData(directory, { disk })).toMatchObject({ problems: [], logs: 6, archives: 2, blobs: 2 })
    const again = await openStore({ ...options, disk })
    await append(again, new Scribe(9).begin().turn())
    expect(await problemsOf(await diskOf(await snapshotOf(disk)))).toEqual([])
    await again.runelog.checkpoint()
    expect(await problemsOf(await diskOf(await snapshotOf(disk)))).toEqual([])
    await again.close()
    expect(await problemsOf(disk)).toEqual([])
  })

  it("unless its folds disagree", async () => {
    const disk = makeDiskMemory()
    const store = await openStore({ ...options, disk })
    await fill(store)
    await store.close()
    const forgetful: typeof evolve = (state, rune) => (rune.kind === "turn.completed" ? state : evolve(state, rune))
    const { problems } = await verifyData(directory, { disk, evolve: forgetful })
    expect(problems).toHaveLength(8)
    expect(problems.filter(({ reason }) => !reason.startsWith("INV-REPLAY-IDEMPOTENT"))).toEqual([])
  })

  /** Takes copies of the disk as power cuts leave it, while a store is filled and conversations come and go. */
  const powerCuts = async (seed: number, cuts: number): Promise<ReadonlyArray<DiskSim>> => {
    const random = randomFrom(seed)
    const disk = new DiskSim()
    const moments: Array<DiskSim> = []
    let operations = 0
    disk.onOperation = () => {
      operations += 1
      if (moments.length < cuts && random() < 0.02) moments.push(disk.crash(seed + operations))
    }
    for (let life = 0; moments.length < cuts && life < 20; life++) {
      const store = await openStore({ ...options, disk })
      if (life === 0) await fill(store)
      else {
        await append(store, new Scribe(10 + life).begin().turn())
        await store.runelog.checkpoint()
        await store.runelog.remove(new Scribe(10 + life).conversationId)
      }
      await store.close()
    }
    disk.onOperation = () => undefined
    return moments
  }

  /** One whose first segment a cut left empty beside a whole second one. */
  const knownSeeds = [468_118_198]

  it("after power cuts at random moments, and after the start that follows", { timeout: 600_000 }, async () => {
    const cuts = count("power cuts before verify", { fast: 60, soak: 1_000 })
    let done = 0
    for (const seed of [...knownSeeds, seedFor("sound after power cuts")]) {
      const moments = await powerCuts(seed, cuts)
      for (const [at, crashed] of moments.entries()) {
        if (!(await crashed.exists(`${directory}/meta`))) continue
        expect(await problemsOf(crashed), `seed ${seed} cut ${at}`).toEqual([])
        await (await openStore({ ...options, disk: crashed })).close()
        expect(await problemsOf(crashed), `seed ${seed} cut ${at}, after the start`).toEqual([])
      }
      done += moments.length
    }
    reportCount("power cuts after which verify found nothing", done)
  })
})

const isData = (path: string): boolean => /\.seg$|\.arc$|\/blobs\/..\/|\/manifest\.\d+$/.test(path)

interface Damaged {
  readonly what: string
  /** Paths of which one must be named, or a path below or above it. */
  readonly paths: ReadonlyArray<string>
  readonly files: Snapshot
}

class Vandal {
  private readonly random: () => number

  constructor(random: () => number) {
    this.random = random
  }

  private below(bound: number): number {
    return Math.floor(this.random() * bound)
  }

  private pick<A>(from: ReadonlyArray<A>): A {
    return from[this.below(from.length)]!
  }

  damage(files: Snapshot): Damaged {
    const kinds = ["flip", "cut", "remove", "removeDirectory", "swap", "cutTail"] as const
    const kind = this.pick(kinds)
    return this[kind](new Map(files), [...files.keys()].filter(isData))
  }

  private flip(files: Map<string, Uint8Array>, paths: ReadonlyArray<string>): Damaged {
    const path = this.pick(paths)
    const bytes = Buffer.from(files.get(path)!)
    const at = this.below(bytes.length)
    bytes[at]! ^= 1 << this.below(8)
    return { what: `flip byte ${at} of ${path}`, paths: [path], files: files.set(path, bytes) }
  }

  private cut(files: Map<string, Uint8Array>, paths: ReadonlyArray<string>): Damaged {
    const path = this.pick(paths)
    const bytes = files.get(path)!
    const at = this.below(bytes.length)
    return { what: `cut ${path} at ${at}`, paths: [path], files: files.set(path, bytes.subarray(0, at)) }
  }

  private remove(files: Map<string, Uint8Array>, paths: ReadonlyArray<string>): Damaged {
    const path = this.pick(paths)
    files.delete(path)
    return { what: `remove ${path}`, paths: [path], files }
  }

  private removeDirectory(files: Map<string, Uint8Array>, paths: ReadonlyArray<string>): Damaged {
    const parents = new Set(paths.map((path) => dirname(path)).filter((path) => path !== directory))
    const parent = this.pick([...parents, `${directory}/runelog`, `${directory}/blobs`])
    for (const path of [...files.keys()]) if (path.startsWith(`${parent}/`)) files.delete(path)
    return { what: `remove directory ${parent}`, paths: [parent], files }
  }

  private swap(files: Map<string, Uint8Array>, paths: ReadonlyArray<string>): Damaged {
    const first = this.pick(paths)
    const ending = /\.[a-z]+$/.exec(first)?.[0] ?? ""
    const others = paths.filter((path) => path !== first && (ending === "" || path.endsWith(ending)))
    if (others.length === 0) return this.flip(files, paths)
    const second = this.pick(others)
    const [left, right] = [files.get(first)!, files.get(second)!]
    files.set(first, right).set(second, left)
    return { what: `swap ${first} and ${second}`, paths: [first, second], files }
  }

  /** The last frames of a log are cut off where one begins, and every index goes: nothing in the log tells of it. */
  private cutTail(files: Map<string, Uint8Array>, paths: ReadonlyArray<string>): Damaged {
    const log = dirname(this.pick(paths.filter((path) => path.endsWith(".seg"))))
    const last = paths
      .filter((path) => dirname(path) === log)
      .sort()
      .at(-1)!
    const bytes = Buffer.from(files.get(last)!)
    const starts: Array<number> = []
    for (let at = 128; at < bytes.length; at += 32 + bytes.readUInt32LE(at + 8)) starts.push(at)
    const at = this.pick(starts)
    for (const path of [...files.keys()]) if (path.startsWith(`${log}/`) && path.endsWith(".idx")) files.delete(path)
    return { what: `cut ${last} at its frame at ${at}`, paths: [log], files: files.set(last, bytes.subarray(0, at)) }
  }
}

/** A problem is at the place, in it, or speaks of a directory above it. */
const isNamed = (paths: ReadonlyArray<string>, files: ReadonlyArray<string>): boolean =>
  files.some((file) =>
    paths.some((path) => file === path || file.startsWith(`${path}/`) || path.startsWith(`${file}/`))
  )

const isSame = (left: Snapshot, right: Snapshot): boolean =>
  left.size === right.size &&
  [...left].every(([path, bytes]) => right.has(path) && Buffer.compare(bytes, right.get(path)!) === 0)

describe("damage", () => {
  let files: Snapshot

  beforeAll(async () => {
    const disk = makeDiskMemory()
    const store = await openStore({ ...options, disk })
    await fill(store)
    await store.close()
    files = await snapshotOf(disk)
  })

  it("of any kind, anywhere, is named", { timeout: 600_000 }, async () => {
    const seed = seedFor("damage")
    const vandal = new Vandal(randomFrom(seed))
    const rounds = count("damaged directories", { fast: 400, soak: 20_000 })
    const unnamed: Array<string> = []
    let done = 0
    while (done < rounds) {
      const { files: damaged, paths, what } = vandal.damage(files)
      if (isSame(files, damaged)) continue
      done += 1
      const problems = await problemsOf(await diskOf(damaged))
      if (
        !isNamed(
          paths,
          problems.map(({ file }) => file)
        )
      )
        unnamed.push(`${what}: ${JSON.stringify(problems.slice(0, 2))}`)
    }
    expect(unnamed, `seed ${seed}`).toEqual([])
    reportCount("damages that verify named", done)
  })

  it("of a log is repaired with a copy, and what has no repair is what is left", { timeout: 600_000 }, async () => {
    const seed = seedFor("repair")
    const vandal = new Vandal(randomFrom(seed))
    const rounds = count("repaired directories", { fast: 24, soak: 500 })
    for (let round = 0; round < rounds; round++) {
      const { files: damaged, what } = vandal.damage(files)
      const place = mkdtempSync(join(tmpdir(), "echs-repair-"))
      try {
        for (const [path, bytes] of damaged) {
          await mkdir(dirname(place + path), { recursive: true })
          await writeFile(place + path, bytes)
        }
        const root = `${place}${directory}`
        const before = await verifyData(root)
        const logs = before.problems.flatMap(({ file, log }) =>
          log === undefined || /\/(archive|blobs)\//.test(file) ? [] : [log]
        )
        const manifest = before.problems.some(({ file }) => file.includes("/manifest."))
        const done = await repairData(root, { journal: false, manifest, logs: [...new Set(logs)] })
        for (const { copies } of done.logs)
          for (const copy of copies) expect((await readFile(copy)).length, what).toBeGreaterThan(0)
        const left = (await verifyData(root)).problems
        expect(
          left.filter(({ file }) => !/\/(archive|blobs)\//.test(file)),
          `seed ${seed}: ${what}`
        ).toEqual([])
      } finally {
        rmSync(place, { recursive: true, force: true })
      }
    }
    reportCount("damaged directories repaired", rounds)
  })
})
