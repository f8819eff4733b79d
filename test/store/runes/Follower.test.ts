// Goal: a follower sees every page once and in order, waits without asking again and again, and ends when told. Method: a
// log of a few lines that tells its watchers. Verifies: INV-RESUME-NO-DUPLICATES, INV-RESUME-NO-GAPS.
import { describe, expect, it } from "vitest"
import type { Page } from "#runelog/segment/Reader.ts"
import { Follower } from "#src/store/runes/Follower.ts"

class Source {
  head = 0
  reads = 0
  readonly listeners = new Set<() => void>()

  follower(after = 0): Follower {
    return new Follower({
      after,
      read: async (cursor): Promise<Page> => {
        this.reads += 1
        return { frames: [], next: Math.min(cursor + 10, this.head), head: this.head }
      },
      watch: (listener) => {
        this.listeners.add(listener)
        return () => void this.listeners.delete(listener)
      }
    })
  }

  grow(events: number): void {
    this.head += events
    for (const listener of this.listeners) listener()
  }
}

describe("a follower", () => {
  it("reads what is there, then what comes", async () => {
    const source = new Source()
    source.grow(25)
    const follower = source.follower()
    expect([(await follower.next())?.next, (await follower.next())?.next, (await follower.next())?.next]).toEqual([
      10, 20, 25
    ])
    expect(follower.after).toBe(25)
    const waiting = follower.next()
    source.grow(1)
    expect((await waiting)?.next).toBe(26)
    follower.close()
    expect(source.listeners.size).toBe(0)
  })

  it("asks once for any number of changes", async () => {
    const source = new Source()
    source.grow(5)
    const follower = source.follower()
    await follower.next()
    for (let change = 0; change < 100; change++) source.grow(0)
    const waiting = follower.next()
    await new Promise((resolve) => setImmediate(resolve))
    expect(source.reads).toBe(2)
    source.grow(1)
    await waiting
    expect(source.reads).toBe(3)
    follower.close()
  })

  it("ends at once when closed, waiting or not", async () => {
    const source = new Source()
    const follower = source.follower()
    const waiting = follower.next()
    await new Promise((resolve) => setImmediate(resolve))
    follower.close()
    expect(await waiting).toBeUndefined()
    expect(await follower.next()).toBeUndefined()
  })
})
