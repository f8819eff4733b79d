// Goal: memory for batches is counted while anybody needs it, and reused after. Method: plain calls.
import { describe, expect, it } from "vitest"
import { Slabs } from "#runelog/commit/Slabs.ts"

/** How many of 40 slabs are used again when they were given back, with so many others in use. */
const reused = (meanwhile: (slabs: Slabs) => void, inUse: number): number => {
  const slabs = new Slabs(4096)
  const taken = Array.from({ length: 40 }, () => slabs.take(1))
  for (let at = 0; at < inUse; at++) slabs.take(1)
  for (const slab of taken) slabs.release(slab)
  meanwhile(slabs)
  const again = Array.from({ length: 40 }, () => slabs.take(1))
  return again.filter((slab) => taken.includes(slab)).length
}

describe("slabs", () => {
  it("count while they are referenced", () => {
    const slabs = new Slabs(4096)
    const slab = slabs.take(100)
    slabs.retain(slab)
    slabs.release(slab)
    expect(slabs.bytes).toBe(4096)
    slabs.release(slab)
    expect(slabs.bytes).toBe(0)
  })

  it("are used again, empty", () => {
    const slabs = new Slabs(4096)
    const slab = slabs.take(100)
    slab.used = 77
    slabs.release(slab)
    expect(slabs.take(100)).toBe(slab)
    expect(slab).toMatchObject({ used: 0, references: 1 })
  })

  it("are made larger for what does not fit, and not kept then", () => {
    const slabs = new Slabs(4096)
    const large = slabs.take(10_000)
    expect(large.buffer).toHaveLength(10_000)
    slabs.release(large)
    expect(slabs.take(10_000)).not.toBe(large)
  })

  it("are kept for reuse in a bounded number", () => {
    expect(reused(() => undefined, 0)).toBe(32)
  })

  it("are given back when little goes on, but for a few and as many as are in use", () => {
    expect(reused((slabs) => slabs.trim(), 0)).toBe(8)
    expect(reused((slabs) => slabs.trim(), 10)).toBe(10)
    expect(reused((slabs) => slabs.trim(), 40)).toBe(32)
  })
})
