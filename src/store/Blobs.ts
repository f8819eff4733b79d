// Bytes too large for a rune, kept once under their own SHA-256: `<data>/blobs/ab/<sha256>`. A blob is durable before
// the rune that names it is appended, never changes, and is checked against its name before any of it is served.

import { createHash, randomBytes } from "node:crypto"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Disk, DiskFile } from "#runelog/disk/Disk.ts"
import { asDiskError, type OpenError } from "#runelog/RunelogErrors.ts"
import { MediaBlobs, OutputBlobs } from "../contract/Blobs.ts"
import { dropOldest } from "../rune/Elements.ts"
import type { BlobRef } from "../rune/kinds/shared.ts"
import { mediaLimits } from "../rune/Media.ts"
import { ensureDirectory, freshFile, isMissing, withFile } from "./Files.ts"
import { attemptOpen, LogEngine } from "./LogEngine.ts"
import { BlobDamaged, BlobsFull, BlobTooLarge, BlobUnknown } from "./StoreErrors.ts"
import { limits } from "./StoreLimits.ts"

export interface BlobsOptions {
  readonly disk: Disk
  /** `<data>/blobs`. */
  readonly directory: string
  /** Random bytes as hex, for the names of unfinished files. */
  readonly randomHex?: (bytes: number) => string
  readonly bytesMax?: number
  readonly keptBytesMax?: number
}

export interface BlobPage {
  readonly bytes: Buffer
  /** Where the next page starts; nothing when this was the last. */
  readonly next: number | undefined
  /** Of the whole blob. */
  readonly size: number
}

export type BlobSource = Uint8Array | string | AsyncIterable<Uint8Array>

const CHUNK_BYTES = 256 * 1024
const isSha256 = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

async function* chunksOf(source: BlobSource): AsyncGenerator<Uint8Array> {
  if (typeof source === "string") yield Buffer.from(source, "utf8")
  else if (source instanceof Uint8Array) yield source
  else yield* source
}

export class Blobs {
  private readonly disk: Disk
  private readonly directory: string
  private readonly randomHex: (bytes: number) => string
  private readonly bytesMax: number
  private readonly keptBytesMax: number
  /** Bytes of all blobs, as far as they were counted, with those that are being written. */
  private bytesKept = 0
  private counting: Promise<void> | undefined
  /** Blobs that came while the others were being counted. */
  private added: Set<string> | undefined = new Set()
  /** Directories that are being made. */
  private readonly making = new Map<string, Promise<void>>()
  /** Blobs that were checked, with their sizes; the longest unused go first. */
  private readonly verified = new Map<string, number>()

  constructor(options: BlobsOptions) {
    this.disk = options.disk
    this.directory = options.directory
    this.randomHex = options.randomHex ?? ((bytes) => randomBytes(bytes).toString("hex"))
    this.bytesMax = options.bytesMax ?? limits.blobBytesMax
    this.keptBytesMax = options.keptBytesMax ?? limits.keptBytesMax
  }

  /** Removes what unfinished writes left behind. Only before the first write. */
  async sweep(): Promise<void> {
    await this.disk.removeTree(this.incoming)
  }

  /** The same as `put` for what need not be kept: beyond the limit of all blobs together it is refused. */
  keep(source: BlobSource, options?: { readonly mediaType?: string }): Promise<BlobRef> {
    return this.store(source, this.keptBytesMax, options)
  }

  /** Resolves when what was there before is counted. */
  async counted(): Promise<number> {
    await this.begun()
    return this.bytesKept
  }

  /** What was there before is counted once, and nobody waits for it: the first outputs may go a little over. */
  private begun(): Promise<void> {
    this.counting ??= this.count()
      .catch(() => undefined)
      .then(() => {
        this.added = undefined
      })
    return this.counting
  }

  /** Counts what passes before it is written, so that those who write side by side see each other. */
  private async *tallied(source: BlobSource, bytesMax: number, tally: { bytes: number }): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunksOf(source)) {
      if (this.bytesKept + chunk.length > bytesMax) throw new BlobsFull({ bytesMax })
      tally.bytes += chunk.length
      this.bytesKept += chunk.length
      yield chunk
    }
  }

  private async count(): Promise<void> {
    const entries = await this.disk.list(this.directory)
    for (const { kind, name } of entries) {
      if (kind !== "directory" || !/^[0-9a-f]{2}$/.test(name)) continue
      for (const file of await this.disk.list(`${this.directory}/${name}`)) {
        if (!isSha256(file.name) || this.added?.has(file.name) === true) continue
        this.bytesKept += await this.open(file.name, (one) => one.size())
      }
    }
  }

  /** Resolves when the bytes are durable under their hash. Bytes that are there already are not kept twice. */
  put(source: BlobSource, options?: { readonly mediaType?: string }): Promise<BlobRef> {
    return this.store(source, Number.POSITIVE_INFINITY, options)
  }

  /** Those who need a directory at once wait for the one who makes it: only then is it there, and durable. */
  private ensure(path: string): Promise<void> {
    const known = this.making.get(path)
    if (known !== undefined) return known
    const made = ensureDirectory(this.disk, path).finally(() => this.making.delete(path))
    this.making.set(path, made)
    return made
  }

  private async store(
    source: BlobSource,
    bytesMax: number,
    options: { readonly mediaType?: string } | undefined
  ): Promise<BlobRef> {
    void this.begun()
    await this.ensure(this.incoming)
    const fresh = await freshFile(this.disk, `${this.incoming}/${this.randomHex(8)}`)
    const tally = { bytes: 0 }
    try {
      const { bytes, sha256 } = await this.write(fresh.file, this.tallied(source, bytesMax, tally))
      await this.ensure(`${this.directory}/${sha256.slice(0, 2)}`)
      const isKnown = await this.disk.exists(this.path(sha256))
      if (!isKnown) this.added?.add(sha256)
      await fresh.keep(this.path(sha256))
      if (isKnown) this.bytesKept -= tally.bytes
      this.verified.delete(sha256)
      const mediaType = options?.mediaType
      return { sha256, bytes, ...(mediaType === undefined ? {} : { media_type: mediaType }) }
    } catch (error) {
      this.bytesKept -= tally.bytes
      await fresh.drop()
      throw asDiskError(error, fresh.path)
    }
  }

  private async write(
    file: DiskFile,
    source: AsyncIterable<Uint8Array>
  ): Promise<{ readonly bytes: number; readonly sha256: string }> {
    const digest = createHash("sha256")
    let bytes = 0
    for await (const chunk of source) {
      if (bytes + chunk.length > this.bytesMax) {
        throw new BlobTooLarge({ bytes: bytes + chunk.length, bytesMax: this.bytesMax })
      }
      digest.update(chunk)
      await file.write(chunk, 0, chunk.length, bytes)
      bytes += chunk.length
    }
    return { bytes, sha256: digest.digest("hex") }
  }

  /** One page of a blob. The first read of a blob checks all of it. */
  async read(sha256: string, range: { readonly offset?: number; readonly bytesMax?: number } = {}): Promise<BlobPage> {
    const size = await this.verify(sha256)
    const offset = Math.min(range.offset ?? 0, size)
    const wanted = Math.min(range.bytesMax ?? limits.blobPageBytes, limits.blobPageBytes, size - offset)
    const bytes = await this.open(sha256, async (file) => {
      const buffer = Buffer.allocUnsafe(wanted)
      return buffer.subarray(0, await file.read(buffer, 0, wanted, offset))
    })
    if (bytes.length < wanted) throw this.damaged(sha256, "it was cut short")
    return { bytes, next: offset + wanted < size ? offset + wanted : undefined, size }
  }

  /** All of a blob, page by page. */
  async *stream(sha256: string): AsyncGenerator<Buffer> {
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      const page: BlobPage = await this.read(sha256, { offset })
      if (page.bytes.length > 0) yield page.bytes
      offset = page.next
    }
  }

  /** All of a blob at once, if it is not larger than the caller can hold. */
  async readAll(sha256: string, options: { readonly bytesMax: number }): Promise<Buffer> {
    const size = await this.verify(sha256)
    if (size > options.bytesMax) throw new BlobTooLarge({ bytes: size, bytesMax: options.bytesMax })
    const pages: Array<Buffer> = []
    for await (const page of this.stream(sha256)) pages.push(page)
    return Buffer.concat(pages)
  }

  async has(sha256: string): Promise<boolean> {
    return isSha256(sha256) && this.disk.exists(this.path(sha256))
  }

  /** Checks the bytes against their name, unless that was done before; returns their number. */
  async verify(sha256: string, options?: { readonly again?: boolean }): Promise<number> {
    if (!isSha256(sha256)) throw new BlobUnknown({ sha256 })
    const known = options?.again === true ? undefined : this.verified.get(sha256)
    if (known !== undefined) return known
    const size = await this.open(sha256, (file) => this.digest(file, sha256))
    this.verified.set(sha256, size)
    if (this.verified.size > limits.verifiedBlobsMax) dropOldest(this.verified)
    return size
  }

  private async digest(file: DiskFile, sha256: string): Promise<number> {
    const digest = createHash("sha256")
    const size = await file.size()
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size))
    for (let position = 0; position < size; ) {
      const read = await file.read(chunk, 0, Math.min(chunk.length, size - position), position)
      if (read === 0) throw this.damaged(sha256, "it was cut short")
      digest.update(chunk.subarray(0, read))
      position += read
    }
    if (digest.digest("hex") !== sha256) throw this.damaged(sha256, "its bytes hash to something else")
    return size
  }

  private async open<A>(sha256: string, body: (file: DiskFile) => Promise<A>): Promise<A> {
    try {
      return await withFile(this.disk, this.path(sha256), body)
    } catch (error) {
      throw isMissing(error) ? new BlobUnknown({ sha256 }) : error
    }
  }

  private damaged(sha256: string, reason: string): BlobDamaged {
    this.verified.delete(sha256)
    return new BlobDamaged({ sha256, file: this.path(sha256), reason })
  }

  private get incoming(): string {
    return `${this.directory}/incoming`
  }

  private path(sha256: string): string {
    return `${this.directory}/${sha256.slice(0, 2)}/${sha256}`
  }
}

export class BlobService extends Context.Service<BlobService, Blobs>()("echs/store/Blobs") {
  static readonly layer: Layer.Layer<BlobService, OpenError, LogEngine> = Layer.effect(
    BlobService,
    Effect.gen(function* () {
      const { directory, disk } = yield* LogEngine
      const blobs = new Blobs({ disk, directory: `${directory}/blobs` })
      yield* attemptOpen(() => blobs.sweep())
      return blobs
    })
  )

  /** Blobs as other rooms see them. */
  static readonly ports: Layer.Layer<OutputBlobs | MediaBlobs, never, BlobService> = Layer.effectContext(
    Effect.map(BlobService, (blobs) =>
      Context.make(OutputBlobs, {
        keep: (source, mediaType = "text/plain") => blobs.keep(source, { mediaType }),
        read: (sha256, range) => blobs.read(sha256, range)
      }).pipe(
        Context.add(MediaBlobs, {
          keep: (bytes, mediaType) => blobs.keep(bytes, { mediaType }),
          read: (sha256) => blobs.readAll(sha256, { bytesMax: mediaLimits.fileBytesMax })
        })
      )
    )
  )
}
