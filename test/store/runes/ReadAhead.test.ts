// Goal: pages come once each and in order, the next one is asked for while one is worked on, and the end is the end as it
// is then. Method: a source made of numbers, whose answers and failures the test decides.
import { describe, expect, it } from "vitest"
import type { RunePage } from "#src/store/runes/Page.ts"
import { type PageSource, readAhead } from "#src/store/runes/ReadAhead.ts"

/** Pages of ten events of a log that ends at `head`. */
class Numbers implements PageSource {
  readonly asked: Array<number> = []
  length: number
  headFails = false
  failsAt = Number.POSITIVE_INFINITY

  constructor(length: number) {
    this.length = length
  }

  readonly head = async (): Promise<number> => {
    if (this.headFails) throw new Error("closed")
    return this.length
  }

  readonly read = async (after: number): Promise<RunePage> => {
    this.asked.push(after)
    if (after >= this.failsAt) throw new Error(`cannot read behind ${after}`)
    return { runes: [], gaps: [], next: Math.min(after + 10, this.length), head: this.length }
  }
}

const collect = async (source: Numbers, eachPage: (next: number) => void = () => undefined): Promise<Array<number>> => {
  const cursors: Array<number> = []
  for await (const { next } of readAhead(source, 0)) {
    cursors.push(next)
    eachPage(next)
  }
  return cursors
}

describe("reading ahead", () => {
  it("gives every page once, and none of an empty log", async () => {
    expect(await collect(new Numbers(0))).toEqual([])
    expect(await collect(new Numbers(7))).toEqual([7])
    expect(await collect(new Numbers(35))).toEqual([10, 20, 30, 35])
  })

  it("asks for the next page before one is worked on, and for nothing behind the end", async () => {
    const source = new Numbers(25)
    const asked: Array<ReadonlyArray<number>> = []
    await collect(source, () => asked.push([...source.asked]))
    expect(asked).toEqual([
      [0, 10],
      [0, 10, 20],
      [0, 10, 20]
    ])
    expect(source.asked).toEqual([0, 10, 20])
  })

  it("goes on with what came while the last page was worked on", async () => {
    const source = new Numbers(20)
    const grow = (next: number): void => {
      if (next === 20) source.length = 24
    }
    expect(await collect(source, grow)).toEqual([10, 20, 24])
  })

  it("ends where nobody can say any more whether there is more", async () => {
    const source = new Numbers(20)
    const close = (next: number): void => {
      source.headFails = next === 20
    }
    expect(await collect(source, close)).toEqual([10, 20])
  })

  it("tells a failure after the pages before it", async () => {
    const source = new Numbers(40)
    source.failsAt = 20
    const cursors: Array<number> = []
    await expect(collect(source, (next) => cursors.push(next))).rejects.toThrow("cannot read behind 20")
    expect(cursors).toEqual([10, 20])
  })

  it("tells nobody of a failure that nobody asks for", async () => {
    const unhandled: Array<unknown> = []
    const note = (error: unknown): void => void unhandled.push(error)
    process.on("unhandledRejection", note)
    const source = new Numbers(40)
    source.failsAt = 10
    for await (const { next } of readAhead(source, 0)) if (next === 10) break
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    process.off("unhandledRejection", note)
    expect(source.asked).toEqual([0, 10])
    expect(unhandled).toEqual([])
  })
})
