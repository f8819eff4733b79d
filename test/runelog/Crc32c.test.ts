// Goal: the checksum is CRC32C whichever way it is computed. Method: published vectors, a bit-by-bit reference
// written from the definition, and every path (bytes, words, native) against it on random ranges.

import { createRequire } from "node:module"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  crc32c,
  crc32cOf,
  crc32cTable,
  loadNative,
  makeCrc32c,
  makeCrc32cOf,
  type NativeCrc32c,
  nativeBytesMin
} from "#runelog/Crc32c.ts"
import { seedFor } from "../support/seed.ts"

const reference = (bytes: Uint8Array, start: number, end: number, seed: number): number => {
  let crc = ~seed
  for (const byte of bytes.subarray(start, end)) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  }
  return ~crc >>> 0
}

const native = loadNative(() => createRequire(import.meta.url)("@node-rs/crc32"))!

const variants = [
  ["as exported", crc32c],
  ["tables only", makeCrc32c(undefined)],
  ["with the native package", makeCrc32c(native)]
] as const

const iscsiRead = [
  0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
  0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0
]

// "123456789" is the check value of the CRC catalogs, the others are RFC 3720 B.4.
const vectors: ReadonlyArray<readonly [string, Uint8Array, number]> = [
  ["nothing", new Uint8Array(0), 0],
  ["123456789", new TextEncoder().encode("123456789"), 0xe3069283],
  ["32 zeros", new Uint8Array(32), 0x8a9136aa],
  ["32 ones", new Uint8Array(32).fill(0xff), 0x62a8ab43],
  ["32 ascending", Uint8Array.from({ length: 32 }, (_, index) => index), 0x46dd794e],
  ["32 descending", Uint8Array.from({ length: 32 }, (_, index) => 31 - index), 0x113fdb5c],
  ["an iSCSI read command", Uint8Array.from(iscsiRead), 0xd9963a56]
]

describe.each(variants)("crc32c %s", (_name, crc) => {
  it.each(vectors)("knows the published value of %s", (_vector, bytes, expected) => {
    // The first call goes by bytes, the later ones by words.
    expect([1, 2, 3].map(() => crc(bytes, 0, bytes.length, 0))).toEqual([expected, expected, expected])
    expect(reference(bytes, 0, bytes.length, 0)).toBe(expected)
  })

  it("agrees with the definition on random ranges and seeds", () => {
    const seed = seedFor("Crc32c random ranges")
    const buffer = Uint8Array.from({ length: 8192 }, (_, index) => Math.imul(index + seed, 2654435761) >>> 11)
    const range = fc.tuple(fc.nat(8192), fc.nat(8192), fc.nat(0xffffffff), fc.nat(15), fc.boolean())
    fc.assert(
      fc.property(range, ([left, right, start, shift, again]) => {
        const bytes = buffer.subarray(shift)
        const [from, to] = [Math.min(left, right, bytes.length), Math.min(Math.max(left, right), bytes.length)]
        if (again) crc(bytes, from, from, 0)
        expect(crc(bytes, from, to, start)).toBe(reference(bytes, from, to, start))
        expect(crc(bytes, from, to, start)).toBe(reference(bytes, from, to, start))
      }),
      { seed, numRuns: 500 }
    )
  })

  it("agrees at every length around the block sizes and the crossover", () => {
    const bytes = Uint8Array.from({ length: 2 * nativeBytesMin }, (_, index) => (index * 167 + 13) & 255)
    const lengths = [...Array(70).keys(), ...Array.from({ length: 8 }, (_, index) => nativeBytesMin - 4 + index)]
    for (const length of lengths) expect(crc(bytes, 3, 3 + length, 77)).toBe(reference(bytes, 3, 3 + length, 77))
  })

  it("gives the checksum of the whole when the parts are chained, wherever it is cut", () => {
    const bytes = Uint8Array.from({ length: 1200 }, (_, index) => (index * 31) & 255)
    const whole = crc(bytes, 0, bytes.length, 0)
    for (let cut = 0; cut <= bytes.length; cut++) {
      expect(crc(bytes, cut, bytes.length, crc(bytes, 0, cut, 0))).toBe(whole)
    }
  })

  it("refuses a range outside of the array", () => {
    const bytes = new Uint8Array(2000)
    for (const [start, end] of [
      [-1, 4],
      [5, 4],
      [0, 2001],
      [1990, 2600],
      [-600, 4]
    ] as const) {
      expect(() => crc(bytes, start, end, 0)).toThrow(RangeError)
    }
  })

  it("sees bytes that change between two calls", () => {
    const bytes = new Uint8Array(64)
    const before = [crc(bytes, 0, 64, 0), crc(bytes, 0, 64, 0)]
    bytes[40] = 1
    expect(before).not.toContain(crc(bytes, 0, 64, 0))
  })
})

describe("crc32c over a buffer with its view", () => {
  it("agrees with the definition below and above the crossover", () => {
    const buffer = Uint8Array.from({ length: 4 * nativeBytesMin }, (_, index) => (index * 71 + 5) & 255).subarray(5)
    const bytes = { buffer, view: new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength) }
    for (const length of [0, 1, 4, 15, 16, 31, 288, nativeBytesMin - 1, nativeBytesMin, 3 * nativeBytesMin]) {
      const expected = reference(buffer, 7, 7 + length, 99)
      expect(crc32cOf(bytes, 7, 7 + length, 99)).toBe(expected)
      expect(makeCrc32cOf(crc32cTable)(bytes, 7, 7 + length, 99)).toBe(expected)
    }
  })

  it("refuses a range outside of the buffer", () => {
    const buffer = new Uint8Array(64)
    const bytes = { buffer, view: new DataView(buffer.buffer) }
    for (const end of [65, 80, 2000]) expect(() => crc32cOf(bytes, 10, end, 0)).toThrow(RangeError)
  })
})

describe("the native package", () => {
  it("is used from the crossover on and not below", () => {
    const lengths: Array<number> = []
    const counting: NativeCrc32c = (bytes, start) => {
      lengths.push(bytes.length)
      return native(bytes, start)
    }
    const crc = makeCrc32c(counting)
    const bytes = new Uint8Array(4096)
    for (const length of [0, nativeBytesMin - 1, nativeBytesMin, 4096]) {
      expect(crc(bytes, 0, length, 9)).toBe(crc32cTable(bytes, 0, length, 9))
    }
    expect(lengths).toEqual([nativeBytesMin, 4096])
  })

  it("is done without when it cannot be loaded", () => {
    const missing = loadNative(() => {
      throw new Error("Cannot find native binding")
    })
    expect(missing).toBeUndefined()
    expect(makeCrc32c(missing)).toBe(crc32cTable)
  })

  it("is done without when it computes something else", () => {
    expect(loadNative(() => createRequire(import.meta.url)("node:zlib"))).toBeUndefined()
    const plainCrc32: NativeCrc32c = createRequire(import.meta.url)("@node-rs/crc32").crc32
    expect(loadNative(() => ({ crc32c: plainCrc32 }))).toBeUndefined()
    expect(loadNative(() => ({ crc32c: (bytes) => native(bytes, 0) }))).toBeUndefined()
  })
})
