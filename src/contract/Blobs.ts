// Bytes kept under their own hash, as the rooms see them that keep or read some: the store offers it, tools and providers
// use it.
import * as Context from "effect/Context"
import type { BlobRef } from "../rune/kinds/shared.ts"

export interface BlobRange {
  readonly offset: number
  readonly bytesMax: number
}

/** Where bytes are kept under their own hash. */
export interface BlobPort {
  /** Text, unless it is told what else it is. */
  readonly keep: (source: string | AsyncIterable<Uint8Array>, mediaType?: string) => Promise<BlobRef>
  /** Some bytes from the offset on; rejects when there is no such blob. */
  readonly read: (sha256: string, range: BlobRange) => Promise<{ readonly bytes: Uint8Array; readonly size: number }>
}

export interface MediaPort {
  /** Resolves when the bytes are durable; rejects when there is no room. */
  readonly keep: (bytes: Uint8Array, mediaType: string) => Promise<BlobRef>
  /** All bytes of an image or a document; rejects when there is no such blob, or when it is too large for one. */
  readonly read: (sha256: string) => Promise<Uint8Array>
}

/** Outputs of tools, read in ranges. */
export class OutputBlobs extends Context.Service<OutputBlobs, BlobPort>()("echs/OutputBlobs") {}

/** Images and documents of messages, read whole. */
export class MediaBlobs extends Context.Service<MediaBlobs, MediaPort>()("echs/MediaBlobs") {}
