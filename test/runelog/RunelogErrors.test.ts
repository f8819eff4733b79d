// Goal: every error says, in words, the facts that a person needs. Method: one of each.
import { describe, expect, it } from "vitest"
import { systemError } from "#runelog/disk/DiskFault.ts"
import * as Errors from "#runelog/RunelogErrors.ts"

const place = { log: "a", file: "/d/a.seg", offset: 7, reason: "checksum mismatch" }

describe("errors", () => {
  it.each<[Error, string]>([
    [new Errors.LogNameInvalid({ log: "." }), '"." is not a log name'],
    [new Errors.LogUnknown({ log: "a" }), 'there is no log "a"'],
    [new Errors.LogDamaged(place), 'log "a" is read-only: checksum mismatch (/d/a.seg at byte 7)'],
    [
      new Errors.EntryTooLarge({ log: "a", bytes: 9, bytesMax: 8 }),
      'an entry of 9 bytes for "a" exceeds the limit of 8'
    ],
    [
      new Errors.BatchTooLarge({ log: "a", bytes: 9, bytesMax: 8, frames: 2, framesMax: 3 }),
      'a batch of 2 frames and 9 bytes for "a" exceeds the limit of 3 frames or 8 bytes'
    ],
    [new Errors.BatchEmpty({ log: "a" }), 'the batch for "a" has no entry'],
    [new Errors.EventIdOutOfOrder({ log: "a", expected: 2, got: 5 }), 'log "a" expects event id 2 next, not 5'],
    [new Errors.EntryInvalid({ log: "a", field: "family", value: 256 }), 'entry field family of "a" cannot be 256'],
    [
      new Errors.Busy({ waitingFor: "journal", bytes: 9, bytesMax: 8 }),
      "9 bytes are waiting to become durable (limit 8)"
    ],
    [
      new Errors.Busy({ waitingFor: "segments", bytes: 9, bytesMax: 8 }),
      "9 bytes of memory hold durable entries until they are in their segments (limit 8)"
    ],
    [new Errors.DiskFull({ path: "/d", reason: "no space" }), "no room on the disk at /d: no space"],
    [new Errors.WriterPoisoned({ path: "/d", cause: new Error("eio") }), "the disk failed at /d: eio; restart"],
    [new Errors.WriterPoisoned({ path: "/d", cause: "eio" }), "the disk failed at /d: eio; restart"],
    [new Errors.DiskFailed({ path: "/d", cause: new Error("eio") }), "the disk failed at /d: eio"],
    [new Errors.DiskFailed({ path: "/d", cause: 5 }), "the disk failed at /d: 5"],
    [new Errors.SyncFailed({ path: "/d", cause: new Error("eio") }), "/d could not be synced: eio"],
    [new Errors.SyncFailed({ path: "/d", cause: 5 }), "/d could not be synced: 5"],
    [
      new Errors.ResourcesScarce({ path: "/d", cause: new Error("emfile") }),
      "no file can be opened at /d for the moment: emfile; try again"
    ],
    [new Errors.ResourcesScarce({ path: "/d", cause: 5 }), "no file can be opened at /d for the moment: 5; try again"],
    [new Errors.WriterClosed({ path: "/d" }), "the runelog at /d is closed"],
    [new Errors.DataMissing({ path: "/d" }), "there is no data at /d"],
    [new Errors.DirectoryLocked({ path: "/d", pid: 42 }), "/d is in use by process 42"],
    [new Errors.DirectoryLocked({ path: "/d", pid: undefined }), "/d is in use by another writer"],
    [
      new Errors.FormatUnsupported({ file: "/d/meta", version: 2, supported: 1 }),
      "/d/meta has format version 2; this build reads version 1"
    ],
    [new Errors.ForeignFile({ file: "/d/x" }), "/d/x is not a file of the runelog; move it away"],
    [new Errors.SegmentCorrupt(place), "/d/a.seg is damaged at byte 7: checksum mismatch"],
    [new Errors.JournalCorrupt(place), "/d/a.seg is damaged at byte 7: checksum mismatch"],
    [new Errors.CursorBeyondEnd({ log: "a", after: 9, head: 8 }), 'cursor 9 lies beyond the head 8 of "a"'],
    [new Errors.ReadInvalid({ log: "a", field: "after", value: -1 }), 'a page of "a" cannot be read with after -1'],
    [new Errors.LimitInvalid({ name: "pageBytes", value: -1, reason: "no" }), "limit pageBytes cannot be -1: no"]
  ])("%s says what is the matter", (error, text) => {
    expect(error.message).toContain(text)
    expect((error as { _tag?: string })._tag).toBe(error.constructor.name)
  })

  it("of a sync tell whether it began", () => {
    const scarce = systemError("EMFILE", "open", "/d/f")
    expect(() => Errors.syncFailed("/d")(scarce)).toThrow(scarce)
    expect(() => Errors.syncFailed("/d")(systemError("EIO", "fsync", "/d/f"))).toThrow(Errors.SyncFailed)
  })

  it("of the system get a meaning, others stay what they are", () => {
    const full = systemError("ENOSPC", "write", "/d/f")
    const broken = systemError("EIO", "write", "/d/f")
    const own = new Errors.LogUnknown({ log: "a" })
    expect(Errors.asDiskError(full, "/d")).toEqual(new Errors.DiskFull({ path: "/d", reason: full.message }))
    expect(Errors.asDiskError(broken, "/d")).toEqual(new Errors.DiskFailed({ path: "/d", cause: broken }))
    expect(Errors.asDiskError(own, "/d")).toBe(own)
    const told = new Errors.DiskFull({ path: "/d", reason: "told before" })
    expect(Errors.noRoomOf(told, "/e")).toBe(told)
    expect(Errors.isFull(Object.assign(new Error("quota"), { code: "EDQUOT" }))).toBe(true)
    expect(() => Errors.syncFailed("/d")(broken)).toThrow(Errors.SyncFailed)
  })
})
