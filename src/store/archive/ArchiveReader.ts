// Reads an archived conversation where it lies: pages by cursor, segments as files, and the proof that nothing was
// altered. At most a few inflated blocks are held, whatever the size of the archive.

import type { Disk, DiskFile } from "#runelog/disk/Disk.ts"
import { systemError } from "#runelog/disk/DiskFault.ts"
import {
  type Bytes,
  bytesOf,
  checkFrame,
  FRAME_HEADER_BYTES,
  flag,
  frameBytes,
  frameCrc,
  frameEventId,
  frameFamily,
  frameFlags,
  frameKind,
  frameKindOf,
  frameLastId,
  framePreviousCrc,
  frameStream
} from "#runelog/Frame.ts"
import { CursorBeyondEnd } from "#runelog/RunelogErrors.ts"
import type { SegmentSource } from "#runelog/recovery/Import.ts"
import type { Frame, Page } from "#runelog/segment/Reader.ts"
import { checkSealedSegment } from "#runelog/segment/SealedSegment.ts"
import type { Seal } from "#runelog/segment/SealFrame.ts"
import { SEGMENT_HEADER_BYTES } from "#runelog/segment/Segment.ts"
import { dropOldest, elementAt } from "../../rune/Elements.ts"
import { withFile } from "../Files.ts"
import type { EngineRead } from "../runes/RuneStore.ts"
import { ArchiveDamaged } from "../StoreErrors.ts"
import { limits } from "../StoreLimits.ts"
import { inflateBlock, type Manifest, type PlacedBlock, placeBlocks, readManifest } from "./ArchiveFile.ts"

export class ArchiveReader {
  readonly manifest: Manifest
  private readonly disk: Disk
  private readonly path: string
  private readonly blocks: ReadonlyArray<PlacedBlock>
  /** Inflated blocks by index, the longest unused first. */
  private readonly cache = new Map<number, Bytes>()

  private constructor(disk: Disk, path: string, manifest: Manifest) {
    this.disk = disk
    this.path = path
    this.manifest = manifest
    this.blocks = placeBlocks(manifest)
  }

  static async open(disk: Disk, path: string, conversationId: string): Promise<ArchiveReader> {
    return new ArchiveReader(disk, path, await readManifest(disk, path, conversationId))
  }

  async readPage(request: EngineRead): Promise<Page> {
    const { conversation_id: log, head } = this.manifest
    if (request.after > head) throw new CursorBeyondEnd({ log, after: request.after, head })
    if (request.after === head) return { frames: [], next: head, head }
    const wanted = request.after + 1
    const index = this.blocks.findLastIndex((block) => block.first_event_id <= wanted)
    const block = this.blocks[index]
    if (block === undefined) throw this.damaged(`no block holds event ${wanted}`)
    const page = this.collect(await this.inflated(index), block, request)
    if (page.next < wanted) throw this.damaged(`event ${wanted} is missing`)
    return page
  }

  private collect(bytes: Bytes, block: PlacedBlock, request: EngineRead): Page {
    const { buffer, view } = bytes
    const frames: Array<Frame> = []
    const wanted = request.after + 1
    let next = request.after
    let crc: number | undefined
    let bytesLeft = request.bytesMax
    for (let at = block.offset === 0 ? SEGMENT_HEADER_BYTES : 0; at < buffer.length; at += frameBytes(view, at)) {
      const fault = checkFrame(bytes, at, buffer.length)
      if (fault !== undefined) throw this.damaged(`${fault} at byte ${block.offset + at} of segment ${block.segment}`)
      if (crc !== undefined && framePreviousCrc(view, at) !== crc) throw this.damaged("a chain is broken")
      crc = frameCrc(view, at)
      if (frameKindOf(view, at) === frameKind.seal || frameLastId(view, at) < wanted) continue
      if (bytesLeft < frameBytes(view, at) && next >= wanted) break
      bytesLeft -= frameBytes(view, at)
      next = frameLastId(view, at)
      if (passes(view, at, request)) frames.push(frameAt(bytes, at, wanted))
    }
    return { frames, next, head: this.manifest.head }
  }

  /** The segments as they were, for bringing the conversation back. */
  async *segments(): AsyncGenerator<SegmentSource> {
    for (const [segment, { first_event_id: firstEventId }] of this.manifest.segments.entries()) {
      yield { firstEventId, chunks: this.chunksOf(segment) }
    }
  }

  private async *chunksOf(segment: number): AsyncGenerator<Uint8Array> {
    for (const [index, block] of this.blocks.entries()) {
      if (block.segment === segment) yield (await this.inflated(index)).buffer
    }
  }

  /** Inflates everything and checks every frame, chain and digest; throws what is wrong. */
  async verify(): Promise<void> {
    let previous: Seal | undefined
    let head = 0
    for (const [segment, { bytes }] of this.manifest.segments.entries()) {
      const place = { log: this.manifest.conversation_id, firstEventId: head + 1, previous }
      const checked = await checkSealedSegment(this.segmentFile(segment, bytes), bytes, place)
      if (checked._tag === "Fault") {
        throw this.damaged(`${checked.reason} at byte ${checked.offset} of segment ${segment}`)
      }
      previous = checked.content.seal
      head = checked.content.lastEventId
    }
    const isWhole = head === this.manifest.head && previous?.sha256 === this.manifest.sha256
    if (!isWhole) throw this.damaged("it ends elsewhere than its manifest says")
  }

  /** A segment as the engine reads files. */
  private segmentFile(segment: number, size: number): DiskFile {
    const refuse = (): never => {
      throw systemError("EBADF", "write", this.path)
    }
    const read: DiskFile["read"] = async (target, offset, length, position) => {
      let copied = 0
      for (const [index, block] of this.blocks.entries()) {
        const from = position + copied - block.offset
        if (block.segment !== segment || from < 0 || from >= block.bytes || copied === length) continue
        const { buffer } = await this.inflated(index)
        copied += buffer.copy(target as Buffer, offset + copied, from, Math.min(buffer.length, from + length - copied))
      }
      return copied
    }
    return {
      read,
      size: async () => size,
      close: async () => undefined,
      write: refuse,
      writeNow: refuse,
      sync: refuse,
      syncNow: refuse,
      truncate: refuse
    }
  }

  private async inflated(index: number): Promise<Bytes> {
    const cached = this.cache.get(index)
    this.cache.delete(index)
    const bytes = cached ?? (await this.inflate(elementAt(this.blocks, index)))
    this.cache.set(index, bytes)
    if (this.cache.size > limits.archiveBlocksCached) dropOldest(this.cache)
    return bytes
  }

  private async inflate(block: PlacedBlock): Promise<Bytes> {
    const buffer = await withFile(this.disk, this.path, (file) => inflateBlock(file, block))
    if (buffer === undefined) throw this.damaged(`the block at byte ${block.position} cannot be inflated`)
    return bytesOf(buffer)
  }

  private damaged(reason: string): ArchiveDamaged {
    return new ArchiveDamaged({ conversationId: this.manifest.conversation_id, file: this.path, reason })
  }
}

const passes = (view: DataView, at: number, { filter }: EngineRead): boolean => {
  if (filter === undefined || frameKindOf(view, at) === frameKind.thinned) return true
  const visibility = frameFlags(view, at) & flag.visibilityMask
  if (filter.visibilityMax !== undefined && visibility > filter.visibilityMax) return false
  return filter.families === undefined || filter.families.has(frameFamily(view, at))
}

const frameAt = ({ buffer, view }: Bytes, at: number, wanted: number): Frame => ({
  kind: frameKindOf(view, at) === frameKind.thinned ? "thinned" : "entry",
  eventId: Math.max(frameEventId(view, at), wanted),
  lastEventId: frameLastId(view, at),
  visibility: frameFlags(view, at) & flag.visibilityMask,
  family: frameFamily(view, at),
  stream: frameStream(view, at),
  body: buffer.subarray(at + FRAME_HEADER_BYTES, at + frameBytes(view, at))
})
