// The directories under runelog/testdata, as scripts: what was appended, in which order, and how it ended. The same script
// gives the same bytes, for as long as the format version stays the same.

import type { Entry } from "#runelog/commit/Entry.ts"
import type { Disk } from "#runelog/disk/Disk.ts"
import { Runelog } from "#runelog/Runelog.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
import { verify } from "#runelog/verify/Verify.ts"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"
import { contentOf, directory, type Snapshot, snapshotOf } from "./Fixture.ts"

const limits = {
  journalFileBytes: 160 * KIB,
  journalFilesMax: 1,
  reserveBytes: 4 * KIB,
  segmentBytes: 1500,
  segmentWriteBytes: 64 * KIB,
  indexEveryFrames: 4,
  indexEveryBytes: 512
}

/** Looks like chance and is none. */
const hexOf = (seed: number) => {
  let state = seed
  return (bytes: number): string => {
    let hex = ""
    for (let at = 0; at < bytes; at++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      hex += (state >>> 24).toString(16).padStart(2, "0")
    }
    return hex
  }
}

const open = (disk: Disk, seed: number): Promise<Runelog> =>
  Runelog.open({ directory, disk, limits, nowMs: () => 0, randomHex: hexOf(seed), sync: "inline" })

const entry = (eventId: number, log: string): Entry => ({
  body: `{"event_id":${eventId},"log":"${log}","text":"${"ä€𝄞 rune ".repeat(eventId % 9)}"}`,
  visibility: eventId % 3,
  family: eventId % 8,
  stream: eventId % 2
})

const appendAll = async (runelog: Runelog, log: string, from: number, to: number): Promise<void> => {
  for (let eventId = from; eventId <= to; eventId++) await runelog.append(log, eventId, [entry(eventId, log)])
}

/** Two logs, closed in order; entries of every visibility, batches, empty and binary bodies. */
const clean = async (disk: Disk): Promise<void> => {
  const runelog = await open(disk, 1)
  await appendAll(runelog, "conv_0001", 1, 20)
  await runelog.append("conv_0001", 21, [
    { body: "" },
    { body: Uint8Array.from({ length: 256 }, (_, byte) => byte), visibility: 2, family: 255, stream: 0xffff_ffff },
    { body: "end of the batch" }
  ])
  await appendAll(runelog, "A", 1, 3)
  await runelog.close()
}

/** Stopped without warning: one log checkpointed in part, one only in the journal, one removed and begun anew. */
const unclean = async (disk: Disk): Promise<void> => {
  const runelog = await open(disk, 2)
  await appendAll(runelog, "conv_0001", 1, 12)
  await appendAll(runelog, "conv_0003", 1, 4)
  await runelog.checkpoint()
  await appendAll(runelog, "conv_0001", 13, 15)
  await appendAll(runelog, "conv_0002", 1, 2)
  await runelog.remove("conv_0003")
  await runelog.append("conv_0003", 1, [entry(1, "conv_0003"), entry(2, "conv_0003")])
}

/** Several segments, sealed; superseded deltas of two streams dropped; goes on behind an explicit seal. */
const sealed = async (disk: Disk): Promise<void> => {
  const runelog = await open(disk, 3)
  let eventId = 1
  for (let turn = 1; turn <= 12; turn++) {
    for (let delta = 1; delta <= 3; delta++) {
      const body = `{"event_id":${eventId},"kind":"turn.assistant_delta","content":"piece ${delta}"}`
      await runelog.append("conv_0001", eventId++, [{ body, stream: turn % 2, role: "delta" }])
    }
    const body = `{"event_id":${eventId},"kind":"turn.assistant_final","turn":${turn}}`
    const more = `{"event_id":${eventId + 1},"kind":"turn.completed","turn":${turn}}`
    await runelog.append("conv_0001", eventId, [{ body, stream: turn % 2, role: "supersedes" }, { body: more }])
    eventId += 2
  }
  await runelog.seal("conv_0001")
  await runelog.append("conv_0001", eventId, [{ body: "behind the seal" }])
  await runelog.close()
}

export const scenarios: Readonly<Record<string, (disk: Disk) => Promise<void>>> = { clean, unclean, sealed }

export const filesOf = async (scenario: string): Promise<Snapshot> => {
  const disk = makeDiskMemory()
  await scenarios[scenario]!(disk)
  return snapshotOf(disk)
}

export interface ExpectedFrame {
  readonly kind: string
  readonly event_id: number
  readonly last_event_id: number
  readonly visibility: number
  readonly family: number
  readonly stream: number
  readonly body_base64: string
}

/** What a directory must hold, recorded when it was written. */
export interface Expected {
  readonly logs: Readonly<Record<string, ReadonlyArray<ExpectedFrame>>>
  readonly recovered_batches: number
  readonly sealed_segments: number
  /** The next digest of each log: it chains all of them, so it changes with any byte before it. */
  readonly seals: Readonly<Record<string, string>>
}

/** Reads all of a directory; seals every log in the end. */
export const contentOfDirectory = async (disk: Disk): Promise<Expected> => {
  const { sealed: sealed_segments } = await verify({ directory, disk })
  const runelog = await open(disk, 9)
  const logs: Record<string, ReadonlyArray<ExpectedFrame>> = {}
  const seals: Record<string, string> = {}
  for (const log of await runelog.list()) {
    const { error, frames } = await contentOf(runelog, log)
    if (error !== undefined) throw error
    logs[log] = frames.map(({ body, eventId, family, kind, lastEventId, stream, visibility }) => ({
      kind,
      event_id: eventId,
      last_event_id: lastEventId,
      visibility,
      family,
      stream,
      body_base64: body.toString("base64")
    }))
    seals[log] = await runelog.seal(log)
  }
  const recovered_batches = runelog.recovered.batches
  await runelog.close()
  return { logs, recovered_batches, sealed_segments, seals }
}
