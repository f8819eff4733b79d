// What `echs verify` reads beyond the log engine: every rune, held against the invariants, every
// log folded in two ways that must agree, every archive to its last byte,
// every blob against its name, and whether each blob that a rune names and each archive that must be there is there.
import type { Disk } from "#runelog/disk/Disk.ts"
import { makeDiskNode } from "#runelog/disk/DiskNode.ts"
import { type Findings, type Inspection, verify } from "#runelog/verify/Verify.ts"
import type { EventInspector, Problem, VerifyReport } from "#runelog/verify/VerifyReport.ts"
import { InvariantChecker } from "../machine/invariants/Invariants.ts"
import { ReplayChecker, type ReplayOptions } from "../machine/invariants/Replay.ts"
import type { Violation } from "../machine/invariants/World.ts"
import type { ConversationId } from "../rune/Ids.ts"
import type { AnyRune } from "../rune/Rune.ts"
import { ArchiveReader } from "../store/archive/ArchiveReader.ts"
import { Blobs } from "../store/Blobs.ts"
import { isMissing } from "../store/Files.ts"
import { decodeFrame } from "../store/runes/Page.ts"
import { BlobUnknown, RuneUnreadable } from "../store/StoreErrors.ts"

export interface DataReport extends VerifyReport {
  readonly archives: number
  readonly blobs: number
}

interface Place {
  readonly file: string
  readonly offset: number
}

const ARCHIVE_SUFFIX = ".arc"
const PAGE_BYTES = 1024 * 1024
/** Of the folds that are compared, one goes through a snapshot after this many runes. */
const SNAPSHOT_EVERY = 1_000

const describeViolation = ({ detail, event_id: eventId, invariant }: Violation): string =>
  `${invariant} is broken at event ${eventId}: ${detail}`

export interface VerifyDataOptions extends Pick<ReplayOptions, "evolve"> {
  /** The machine's own, unless told. */
  readonly disk?: Disk
}

/** A log whose folds are compared once all of it was read. */
interface Replayed {
  readonly log: string
  readonly checker: ReplayChecker
  /** Of the last event so far. */
  place: Place | undefined
}

/** Every blob that a value names: an object with the hash and the size of one. */
const blobsIn = function* (value: unknown): Generator<string> {
  if (typeof value !== "object" || value === null) return
  const { bytes, sha256 } = value as { readonly sha256?: unknown; readonly bytes?: unknown }
  if (typeof sha256 === "string" && typeof bytes === "number" && /^[0-9a-f]{64}$/.test(sha256)) yield sha256
  for (const part of Object.values(value)) yield* blobsIn(part)
}

class DataInspection implements Inspection {
  private readonly folds: VerifyDataOptions
  private readonly disk: Disk
  private readonly directory: string
  private readonly blobs: Blobs
  /** Blobs that runes name, each with the first place that does. */
  private readonly named = new Map<string, Place & { readonly log: string }>()
  /** The log that is being read; those before it have been compared. */
  private replayed: Replayed | undefined
  private readonly unlikeReplays: Array<Problem> = []
  archiveCount = 0
  blobCount = 0

  constructor(disk: Disk, directory: string, folds: VerifyDataOptions) {
    this.folds = folds
    this.disk = disk
    this.directory = directory
    this.blobs = new Blobs({ disk, directory: `${directory}/blobs` })
  }

  log(conversationId: string): EventInspector {
    this.compareReplay()
    const checker = new InvariantChecker()
    const replay = new ReplayChecker({
      conversation_id: conversationId as ConversationId,
      snapshotEvery: SNAPSHOT_EVERY,
      ...(this.folds.evolve === undefined ? {} : { evolve: this.folds.evolve })
    })
    const replayed: Replayed = { log: conversationId, checker: replay, place: undefined }
    this.replayed = replayed
    return (event, place) => {
      if (event.kind === "thinned") {
        checker.skip({ from: event.eventId, to: event.lastEventId })
        return []
      }
      const rune = decodeFrame(conversationId, event)
      if (rune instanceof RuneUnreadable) return [rune.message]
      this.note(conversationId, rune, place)
      replayed.place = place
      replay.add(rune, decodeFrame(conversationId, event) as AnyRune)
      const before = checker.violations.length
      checker.check(rune)
      return checker.violations.slice(before).map(describeViolation)
    }
  }

  /** The log has been read to its end: all ways to fold it must agree. */
  private compareReplay(): void {
    const { checker, log, place } = this.replayed ?? {}
    this.replayed = undefined
    if (checker === undefined || log === undefined || place === undefined) return
    for (const violation of checker.finish().violations)
      this.unlikeReplays.push({ ...place, log, reason: describeViolation(violation) })
  }

  private note(log: string, rune: AnyRune, place: Place): void {
    for (const sha256 of blobsIn(rune.payload)) if (!this.named.has(sha256)) this.named.set(sha256, { ...place, log })
  }

  async finish(findings: Findings, items: ReadonlyMap<string, string>): Promise<void> {
    await this.verifyArchives(findings, items)
    this.compareReplay()
    for (const problem of this.unlikeReplays) findings.problem(problem)
    await this.verifyBlobs(findings)
  }

  private async verifyArchives(findings: Findings, items: ReadonlyMap<string, string>): Promise<void> {
    const names = await this.list("archive")
    for (const [item] of items) {
      const name = item.slice("archive/".length)
      if (!names.includes(name))
        findings.problem({ file: `${this.directory}/${item}`, offset: 0, reason: "the archive is missing" })
    }
    for (const name of names) {
      const file = `${this.directory}/archive/${name}`
      if (name.endsWith(ARCHIVE_SUFFIX)) await this.verifyArchive(findings, file, items.get(`archive/${name}`))
      else findings.note({ file, text: "an unfinished file; the next start removes it" })
    }
  }

  private async verifyArchive(findings: Findings, file: string, sha256: string | undefined): Promise<void> {
    const id = file.slice(file.lastIndexOf("/") + 1, -ARCHIVE_SUFFIX.length)
    this.archiveCount += 1
    try {
      const reader = await ArchiveReader.open(this.disk, file, id)
      await reader.verify()
      if (sha256 !== undefined && reader.manifest.sha256 !== sha256)
        findings.problem({ file, log: id, offset: 0, reason: "it is not the archive that the manifest knows of" })
      await this.readArchive(findings, reader, { file, id })
    } catch (error) {
      if (isMissing(error)) throw error
      findings.problem({ file, log: id, offset: 0, reason: (error as Error).message })
    }
  }

  private async readArchive(
    findings: Findings,
    reader: ArchiveReader,
    { file, id }: { readonly file: string; readonly id: string }
  ): Promise<void> {
    const inspect = this.log(id)
    for (let after = 0; after < reader.manifest.head; ) {
      const page = await reader.readPage({ after, bytesMax: PAGE_BYTES })
      for (const frame of page.frames) {
        for (const reason of inspect(frame, { file, offset: 0 })) findings.problem({ file, log: id, offset: 0, reason })
      }
      after = page.next
    }
  }

  private async verifyBlobs(findings: Findings): Promise<void> {
    const kept = new Set<string>()
    for (const folder of await this.list("blobs")) {
      if (folder === "incoming") continue
      for (const name of await this.list(`blobs/${folder}`)) {
        kept.add(name)
        this.blobCount += 1
        await this.verifyBlob(findings, name, { file: `${this.directory}/blobs/${folder}/${name}` })
      }
    }
    for (const [sha256, { file, log, offset }] of this.named) {
      if (kept.has(sha256)) continue
      const reason = `blob ${sha256} is missing, a rune names it`
      findings.problem({ file: `${this.directory}/blobs/${sha256.slice(0, 2)}/${sha256}`, log, offset: 0, reason })
      findings.note({ file, log, text: `the event at byte ${offset} names blob ${sha256}, which is missing` })
    }
  }

  private async verifyBlob(findings: Findings, sha256: string, { file }: { readonly file: string }): Promise<void> {
    try {
      await this.blobs.verify(sha256, { again: true })
    } catch (error) {
      const reason = error instanceof BlobUnknown ? "its name is not that of a blob" : (error as Error).message
      findings.problem({ file, offset: 0, reason })
    }
  }

  private async list(name: string): Promise<ReadonlyArray<string>> {
    try {
      return (await this.disk.list(`${this.directory}/${name}`)).map((entry) => entry.name)
    } catch (error) {
      if (isMissing(error)) return []
      throw error
    }
  }
}

/** Reads everything in a data directory; throws `DataMissing` where there is none. */
export const verifyData = async (directory: string, options: VerifyDataOptions = {}): Promise<DataReport> => {
  const disk = options.disk ?? makeDiskNode()
  let inspection = new DataInspection(disk, directory, options)
  const inspect = (): Inspection => {
    inspection = new DataInspection(disk, directory, options)
    return inspection
  }
  const report = await verify({ directory, disk, inspect })
  return { ...report, archives: inspection.archiveCount, blobs: inspection.blobCount }
}
