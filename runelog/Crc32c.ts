// CRC32C (Castagnoli, reflected 0x1EDC6F41), the checksum of every frame. Short ranges run through slicing-by-16
// tables in JavaScript, long ones through the native package when it can be loaded; both give the same number.
// Promise: no allocation for short ranges inside an array that is checksummed again and again.
import { createRequire } from "node:module"

/** Checksum of `bytes[start…end)`; `seed` is the checksum of what came before (0 at the beginning). */
export type Crc32c = (bytes: Uint8Array, start: number, end: number, seed: number) => number

/** The shape of the native package: the whole of `bytes`, continuing from `seed`. */
export type NativeCrc32c = (bytes: Uint8Array, seed: number) => number

/**
 * From this many bytes on the native call wins. Best of 25 rounds on Node 26, x86-64, in ns per call:
 * 288 B: tables 167, native 263 · 512 B: 285, 295 · 1 KiB: 540, 374 · 64 KiB: 36,000, 10,700.
 * At 288 B the other candidates were slower: byte loads by 8 tables 267, by 16 tables 240, aligned words 185.
 */
export const nativeBytesMin = 512

const buildTables = (): Int32Array => {
  const tables = new Int32Array(16 * 256)
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
    tables[byte] = crc
  }
  for (let index = 256; index < tables.length; index++) {
    const previous = tables[index - 256]!
    tables[index] = (previous >>> 8) ^ tables[previous & 255]!
  }
  return tables
}

const T = buildTables()

// A DataView loads unaligned words in one instruction, but making one costs as much as a short checksum.
// It is therefore made for an array seen twice in a row (a frame buffer, a page) and kept for the next call.
let lastBytes: Uint8Array | undefined
let lastView: DataView | undefined

const viewOf = (bytes: Uint8Array): DataView | undefined => {
  if (bytes !== lastBytes) {
    lastBytes = bytes
    lastView = undefined
  } else if (lastView === undefined) {
    lastView = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }
  return lastView
}

const byWords = (view: DataView, start: number, end: number, crc: number): number => {
  let at = start
  for (const stop = end - 15; at < stop; at += 16) {
    const a = crc ^ view.getInt32(at, true)
    const b = view.getInt32(at + 4, true)
    const c = view.getInt32(at + 8, true)
    const d = view.getInt32(at + 12, true)
    crc =
      T[3840 | (a & 255)]! ^
      T[3584 | ((a >>> 8) & 255)]! ^
      T[3328 | ((a >>> 16) & 255)]! ^
      T[3072 | (a >>> 24)]! ^
      (T[2816 | (b & 255)]! ^ T[2560 | ((b >>> 8) & 255)]! ^ T[2304 | ((b >>> 16) & 255)]! ^ T[2048 | (b >>> 24)]!) ^
      (T[1792 | (c & 255)]! ^ T[1536 | ((c >>> 8) & 255)]! ^ T[1280 | ((c >>> 16) & 255)]! ^ T[1024 | (c >>> 24)]!) ^
      (T[768 | (d & 255)]! ^ T[512 | ((d >>> 8) & 255)]! ^ T[256 | ((d >>> 16) & 255)]! ^ T[d >>> 24]!)
  }
  for (const stop = end - 3; at < stop; at += 4) {
    const a = crc ^ view.getInt32(at, true)
    crc = T[768 | (a & 255)]! ^ T[512 | ((a >>> 8) & 255)]! ^ T[256 | ((a >>> 16) & 255)]! ^ T[a >>> 24]!
  }
  for (; at < end; at++) crc = (crc >>> 8) ^ T[(crc ^ view.getUint8(at)) & 255]!
  return crc
}

const byBytes = (bytes: Uint8Array, start: number, end: number, crc: number): number => {
  let at = start
  for (const stop = end - 7; at < stop; at += 8) {
    crc =
      T[1792 | ((crc ^ bytes[at]!) & 255)]! ^
      T[1536 | (((crc >>> 8) ^ bytes[at + 1]!) & 255)]! ^
      T[1280 | (((crc >>> 16) ^ bytes[at + 2]!) & 255)]! ^
      T[1024 | ((crc >>> 24) ^ bytes[at + 3]!)]! ^
      (T[768 | bytes[at + 4]!]! ^ T[512 | bytes[at + 5]!]! ^ T[256 | bytes[at + 6]!]! ^ T[bytes[at + 7]!]!)
  }
  for (; at < end; at++) crc = (crc >>> 8) ^ T[(crc ^ bytes[at]!) & 255]!
  return crc
}

/** The tables alone, whatever the length. */
export const crc32cTable: Crc32c = (bytes, start, end, seed) => {
  if (start < 0 || start > end || end > bytes.length) {
    throw new RangeError(`range ${start}…${end} lies outside of ${bytes.length} bytes`)
  }
  const view = viewOf(bytes)
  return ~(view === undefined ? byBytes(bytes, start, end, ~seed) : byWords(view, start, end, ~seed)) >>> 0
}

/** Tables for short ranges, `native` for long ones; tables only when there is no native. */
export const makeCrc32c = (native: NativeCrc32c | undefined): Crc32c =>
  native === undefined
    ? crc32cTable
    : (bytes, start, end, seed) =>
        end - start < nativeBytesMin || start < 0 || end > bytes.length
          ? crc32cTable(bytes, start, end, seed)
          : native(bytes.subarray(start, end), seed)

/** A buffer with its view at hand: the hot paths have both, and need no guess at which array comes next. */
export interface Viewed {
  readonly buffer: Uint8Array
  readonly view: DataView
}

/** As `crc32c`, over a buffer whose view exists already. */
export const makeCrc32cOf =
  (long: Crc32c) =>
  (bytes: Viewed, start: number, end: number, seed: number): number =>
    end - start < nativeBytesMin ? ~byWords(bytes.view, start, end, ~seed) >>> 0 : long(bytes.buffer, start, end, seed)

const checkBytes = new TextEncoder().encode("123456789")

/** The native checksum, or undefined when it cannot be loaded or does not compute CRC32C. */
export const loadNative = (load: () => { readonly crc32c: NativeCrc32c }): NativeCrc32c | undefined => {
  try {
    const native = load().crc32c
    return native(checkBytes.subarray(4), native(checkBytes.subarray(0, 4), 0)) === 0xe3069283 ? native : undefined
  } catch {
    return undefined
  }
}

export const crc32c: Crc32c = makeCrc32c(loadNative(() => createRequire(import.meta.url)("@node-rs/crc32")))
export const crc32cOf = makeCrc32cOf(crc32c)
