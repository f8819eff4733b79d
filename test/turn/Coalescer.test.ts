// Goal: a stream becomes few runes, in order, with nothing lost and nothing piled up. Method: a sink and a timer in the
// hands of the test; random fragments against plain concatenation.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Coalescer, nextMultipleMs } from "#src/turn/Coalescer.ts"
import { limits } from "#src/turn/TurnLimits.ts"
import { seedFor } from "../support/seed.ts"

interface Sent {
  readonly text: string
  readonly land: () => void
  readonly fail: (error: unknown) => void
}

const bench = (options: { readonly everyMs?: number; readonly charsMax?: number } = {}) => {
  const sent: Array<Sent> = []
  let timers: Array<{ readonly run: () => void; readonly everyMs: number }> = []
  const coalescer = new Coalescer({
    ...options,
    send: (text) => new Promise((resolve, reject) => sent.push({ text, land: resolve, fail: reject })),
    setTimer: (run, everyMs) => {
      const timer = { run, everyMs }
      timers.push(timer)
      return () => {
        timers = timers.filter((one) => one !== timer)
      }
    }
  })
  return {
    coalescer,
    sent,
    texts: () => sent.map((one) => one.text),
    timers: () => timers,
    fire: () => {
      for (const timer of timers.splice(0)) timer.run()
    },
    landAll: () => {
      for (const one of sent) one.land()
    }
  }
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

describe("fragments", () => {
  it("go in the next turn of the event loop when they are the first, then at the next multiple of 50 ms", () => {
    const { coalescer, fire, texts, timers } = bench()
    for (const fragment of ["fi", "rst"]) expect(coalescer.add(fragment)).toBeUndefined()
    expect(timers().map((timer) => timer.everyMs)).toEqual([0])
    fire()
    expect(texts()).toEqual(["first"])
    expect(timers()).toEqual([])
    for (const fragment of ["a", "b", "c"]) expect(coalescer.add(fragment)).toBeUndefined()
    expect(texts()).toEqual(["first"])
    expect(timers().map((timer) => timer.everyMs)).toEqual([50])
    fire()
    expect(texts()).toEqual(["first", "abc"])
    coalescer.add("d")
    expect(timers().length).toBe(1)
    fire()
    expect(texts()).toEqual(["first", "abc", "d"])
  })

  it("are sent off at the same moments, whichever stream they belong to", () => {
    expect([0, 0.5, 49, 50, 1_234].map((nowMs) => nowMs + nextMultipleMs(nowMs, 50))).toEqual([50, 50, 50, 100, 1_250])
  })

  it("that are empty do not use up the first place", () => {
    const { coalescer, fire, texts, timers } = bench()
    coalescer.add("")
    fire()
    coalescer.add("first")
    expect(timers().map((timer) => timer.everyMs)).toEqual([0])
    fire()
    expect(texts()).toEqual(["first"])
  })

  it("go at once when 4 KiB have come, and the timer with them", () => {
    const { coalescer, fire, texts, timers } = bench()
    coalescer.add("first")
    fire()
    coalescer.add("x".repeat(limits.deltaCharsMax - 1))
    expect(texts()).toEqual(["first"])
    coalescer.add("y")
    expect(texts().map((text) => text.length)).toEqual([5, limits.deltaCharsMax])
    expect(timers()).toEqual([])
  })

  it("each go at once when nothing is to be gathered", () => {
    const { coalescer, texts } = bench({ everyMs: 0 })
    for (const fragment of ["a", "b"]) coalescer.add(fragment)
    expect(texts()).toEqual(["a", "b"])
  })

  it("that are larger than a piece are cut, and no character is", () => {
    const { coalescer, texts } = bench({ charsMax: 4 })
    coalescer.add("abc😀def😀g")
    coalescer.flush()
    expect(texts()).toEqual(["abc", "😀de", "f😀g"])
    expect(texts().every((text) => text.isWellFormed())).toBe(true)
  })

  it("arrive whole and in order, whatever their sizes and whenever they are sent", () => {
    const fragments = fc.array(fc.oneof(fc.string({ maxLength: 9 }), fc.constant("FLUSH"), fc.constant("FIRE")))
    fc.assert(
      fc.property(fragments, fc.integer({ min: 2, max: 20 }), (steps, charsMax) => {
        const { coalescer, fire, texts } = bench({ charsMax })
        let expected = ""
        for (const step of steps) {
          if (step === "FLUSH") coalescer.flush()
          else if (step === "FIRE") fire()
          else {
            expected += step
            void coalescer.add(step)
          }
        }
        coalescer.flush()
        expect(texts().join("")).toBe(expected)
        expect(texts().every((text) => text.length <= charsMax && text !== "")).toBe(true)
      }),
      { seed: seedFor("coalescer"), numRuns: 300 }
    )
  })
})

describe("a sink that is slow", () => {
  it("holds the stream back once too many pieces are under way, until there is room", async () => {
    const { coalescer, sent } = bench({ everyMs: 0 })
    for (let index = 1; index < limits.deltasInFlightMax; index++) expect(coalescer.add("x")).toBeUndefined()
    let waited = false
    const held = coalescer.add("x")
    void held?.then(() => {
      waited = true
    })
    expect(held).toBeInstanceOf(Promise)
    await nextTurn()
    expect(waited).toBe(false)
    sent[0]?.land()
    await held
    expect(coalescer.add("y")).toBeInstanceOf(Promise)
  })

  it("is waited for at the end", async () => {
    const { coalescer, fire, landAll, texts } = bench()
    coalescer.add("head")
    fire()
    coalescer.add("tail")
    let done = false
    const finished = coalescer.finish().then(() => {
      done = true
    })
    await nextTurn()
    expect(texts()).toEqual(["head", "tail"])
    expect(done).toBe(false)
    landAll()
    await finished
  })

  it("is not waited for when what is left is of no use", async () => {
    const { coalescer, fire, landAll, texts, timers } = bench()
    coalescer.add("sent")
    fire()
    coalescer.add("never sent")
    coalescer.discard()
    expect(timers()).toEqual([])
    landAll()
    await coalescer.finish()
    expect(texts()).toEqual(["sent"])
  })
})

describe("a sink that fails", () => {
  it("stops the stream at its next word, with the reason", async () => {
    const { coalescer, sent } = bench({ everyMs: 0 })
    const reason = new Error("disk gone")
    coalescer.add("a")
    sent[0]?.fail(reason)
    await nextTurn()
    expect(() => coalescer.add("b")).toThrow(reason)
  })

  it("fails the end, also when later pieces landed", async () => {
    const { coalescer, sent } = bench({ everyMs: 0 })
    coalescer.add("a")
    coalescer.add("b")
    sent[1]?.land()
    sent[0]?.fail(new Error("first"))
    await expect(coalescer.finish()).rejects.toThrow("first")
  })

  it("lets a source go on that waited for room", async () => {
    const { coalescer, sent } = bench({ everyMs: 0 })
    for (let index = 1; index < limits.deltasInFlightMax; index++) coalescer.add("x")
    const held = coalescer.add("x")
    for (const one of sent) one.fail(new Error("all gone"))
    await held
    expect(() => coalescer.add("y")).toThrow("all gone")
  })
})
