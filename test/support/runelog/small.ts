// A small runelog on a simulated disk, and short words for what tests of single events do with it.

import type { Entry } from "#runelog/commit/Entry.ts"
import type { Disk } from "#runelog/disk/Disk.ts"
import type { RunelogOptions } from "#runelog/Options.ts"
import { Runelog } from "#runelog/Runelog.ts"
import { KIB, type Limits } from "#runelog/RunelogLimits.ts"
import { DiskSim } from "../disk/DiskSim.ts"

export const smallLimits: Partial<Limits> = {
  journalFileBytes: 64 * KIB,
  reserveBytes: 8 * KIB,
  segmentBytes: 2 * KIB,
  segmentWriteBytes: 64 * KIB,
  pendingBytesMax: 512 * KIB
}

export const directory = "/srv/echs/data"

export const openSmall = (disk: Disk, options: Partial<RunelogOptions> = {}): Promise<Runelog> =>
  Runelog.open({ directory, disk, sync: "inline", ...options, limits: { ...smallLimits, ...options.limits } })

export const entries = (...bodies: ReadonlyArray<string>): ReadonlyArray<Entry> => bodies.map((body) => ({ body }))

/** Appends one event with a body of its own, at the end of the log. */
export const appendNext = async (runelog: Runelog, log: string, bytes = 10): Promise<number> => {
  const eventId = (await runelog.head(log)) + 1
  await runelog.append(log, eventId, entries(bodyOf(log, eventId, bytes)))
  return eventId
}

export const bodyOf = (log: string, eventId: number, bytes = 10): string => `${log} ${eventId} `.padEnd(bytes, ".")

/** Every event of a log in order, a thinned range as its two ends; page by page. */
export const readWhole = async (runelog: Runelog, log: string, bytesMax = 1000): Promise<ReadonlyArray<string>> => {
  const found: Array<string> = []
  const head = await runelog.head(log)
  for (let after = 0; after < head; ) {
    const page = await runelog.read(log, { after, bytesMax })
    for (const frame of page.frames) {
      found.push(frame.kind === "thinned" ? `${frame.eventId}-${frame.lastEventId}` : frame.body.toString())
    }
    after = page.next
  }
  return found
}

/** The disk as it is after a power cut; the writer that was on it is put away. */
export const cutPower = async (disk: DiskSim, runelog: Runelog | undefined, seed: number): Promise<DiskSim> => {
  const found = disk.crash(seed)
  disk.powerOff()
  await runelog?.close().catch(() => undefined)
  return found
}

export const freshDisk = (): DiskSim => new DiskSim()
