// Goal: there is one state per log however many ask for it, one in use is never forgotten, and memory stays bounded.
// Method: logs that are opened by hand, at the moment the test wants.
import { describe, expect, it } from "vitest"
import { emptyLog, type LogState } from "#runelog/LogState.ts"
import { ResidentLogs } from "#runelog/ResidentLogs.ts"
import { LogNameInvalid } from "#runelog/RunelogErrors.ts"
import { errorOf } from "./Fixture.ts"

/** Residents whose logs open when they are told to. */
const controlled = (logsMax = 10) => {
  const opens: Array<{ readonly log: string } & PromiseWithResolvers<LogState>> = []
  const residents = new ResidentLogs({
    logsMax,
    logs: new Map(),
    release: () => false,
    open: (log) => {
      const opening = { log, ...Promise.withResolvers<LogState>() }
      opens.push(opening)
      return opening.promise
    }
  })
  return { residents, opens }
}

const immediate = (logsMax: number, logs: ReadonlyArray<LogState> = []) => {
  /** Those that may go though they are not idle. */
  const releasable = new Set<string>()
  const opened: Array<string> = []
  const residents = new ResidentLogs({
    logsMax,
    logs: new Map(logs.map((log) => [log.name, log])),
    release: (log) => releasable.has(log.name),
    open: async (log) => {
      opened.push(log)
      return emptyLog(log)
    }
  })
  const names = (): ReadonlyArray<string> => [...residents.values()].map(({ name }) => name)
  return { residents, opened, names, releasable }
}

describe("a log", () => {
  it("is opened once for all who ask for it at once, and found in memory from then on", async () => {
    const { opens, residents } = controlled()
    const asked = [residents.find("a"), residents.find("a"), residents.use("a", async (state) => state)]
    expect(opens).toHaveLength(1)
    const state = emptyLog("a")
    opens[0]!.resolve(state)
    expect(await Promise.all(asked)).toEqual([state, state, state])
    for (const found of await Promise.all(asked)) expect(found).toBe(state)
    expect(residents.get("a")).toBe(state)
    expect(await residents.find("a")).toBe(state)
    expect(opens).toHaveLength(1)
    expect(residents.size).toBe(1)
  })

  it("that was in memory from the start is not opened", async () => {
    const recovered = emptyLog("a")
    const { opened, residents } = immediate(10, [recovered])
    expect(await residents.find("a")).toBe(recovered)
    expect(opened).toEqual([])
  })

  it("that could not be opened is opened anew by the next who asks", async () => {
    const { opens, residents } = controlled()
    const asked = [residents.find("a"), residents.find("a")]
    const reason = new Error("the disk is gone")
    opens[0]!.reject(reason)
    for (const one of asked) expect(await errorOf(one)).toBe(reason)
    expect(residents.size).toBe(0)
    const again = residents.find("a")
    expect(opens).toHaveLength(2)
    const state = emptyLog("a")
    opens[1]!.resolve(state)
    expect(await again).toBe(state)
  })

  it("by a name that no log can have is refused before anything is opened", async () => {
    const { opened, residents } = immediate(10)
    for (const log of ["", "../a", "a/b", "x".repeat(65)]) {
      expect(await errorOf(residents.find(log))).toEqual(new LogNameInvalid({ log }))
      expect(await errorOf(residents.use(log, async () => "ran"))).toBeInstanceOf(LogNameInvalid)
    }
    expect(opened).toEqual([])
  })
})

describe("a log in use", () => {
  it("is the one in memory, though it was forgotten and opened again on the way", async () => {
    const { opens, residents } = controlled()
    const found = residents.find("a")
    opens[0]!.resolve(emptyLog("a"))
    await found
    const used = residents.use("a", async (state) => state)
    residents.forget("a")
    while (opens.length < 2) await Promise.resolve()
    const second = emptyLog("a")
    opens[1]!.resolve(second)
    expect(await used).toBe(second)
    expect(residents.get("a")).toBe(second)
  })

  it("does not rest and makes no room for others, until the last user is done", async () => {
    const { names, residents } = immediate(1)
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const uses = [residents.use("a", () => first.promise), residents.use("a", () => second.promise)]
    await residents.find("a")
    while (residents.get("a")!.users < 2) await Promise.resolve()
    residents.rest("a")
    await residents.find("b")
    expect(names()).toEqual(["a", "b"])
    first.resolve()
    await uses[0]
    residents.rest("a")
    expect(names()).toContain("a")
    second.reject(new Error("it failed"))
    expect(await errorOf(uses[1]!)).toEqual(new Error("it failed"))
    residents.rest("a")
    expect(names()).toEqual(["b"])
    residents.rest("a")
  })
})

describe("memory", () => {
  it("holds no more idle logs than it may: the longest known go first", async () => {
    const { names, opened, residents } = immediate(20)
    for (let at = 1; at <= 20; at++) await residents.find(`log-${at}`)
    expect(residents.size).toBe(20)
    await residents.find("log-21")
    expect(names()).toEqual(Array.from({ length: 20 }, (_, at) => `log-${at + 2}`))
    await residents.find("log-1")
    expect(opened.filter((name) => name === "log-1")).toHaveLength(2)
    expect(names()[0]).toBe("log-3")
  })

  it("keeps logs that are not idle, however many, and shrinks with every log that is opened once they are", async () => {
    const { names, residents } = immediate(4)
    const logs = ["a", "b", "c", "d", "e", "f", "g", "h"]
    for (const log of logs) (await residents.find(log)).unsyncedSequence = 1
    expect(residents.size).toBe(8)
    for (const state of residents.values()) state.unsyncedSequence = 0
    for (let at = 0; at < 8; at++) await residents.find(`new-${at}`)
    expect(residents.size).toBe(4)
    expect(names().at(-1)).toBe("new-7")
  })

  it("does not grow with logs that come and go, and then still forgets the longest known first", async () => {
    const { names, opened, residents } = immediate(3)
    for (const log of ["a", "b"]) await residents.find(log)
    for (let at = 0; at < 500; at++) {
      await residents.find("passing")
      residents.rest("passing")
    }
    expect(opened).toHaveLength(502)
    expect((residents as unknown as { readonly line: ReadonlyArray<string> }).line.length).toBeLessThan(100)
    for (const log of ["c", "d", "e"]) await residents.find(log)
    expect(names()).toEqual(["c", "d", "e"])
  })

  it("of no log at all is held where none may be", async () => {
    const { residents } = immediate(0)
    for (const log of ["a", "b", "c"]) await residents.find(log)
    expect(residents.size).toBe(1)
  })

  it("forgets a log when it is settled, where there are too many, and only that one", async () => {
    const { names, residents } = immediate(2)
    for (const log of ["a", "b", "c"]) (await residents.find(log)).unsyncedSequence = 1
    const [a, b] = [residents.get("a")!, residents.get("b")!]
    residents.settled(a)
    expect(names()).toEqual(["a", "b", "c"])
    a.unsyncedSequence = 0
    residents.settled(emptyLog("a"))
    expect(names()).toEqual(["a", "b", "c"])
    residents.settled(a)
    expect(names()).toEqual(["b", "c"])
    b.unsyncedSequence = 0
    residents.settled(b)
    expect(names()).toEqual(["b", "c"])
  })

  it("looks at a few logs for each that is opened, however many cannot be forgotten", async () => {
    const looks = async (dirty: number): Promise<number> => {
      let looked = 0
      const { residents } = immediate(10)
      for (let at = 0; at < dirty; at++) {
        const state = await residents.find(`dirty-${at}`)
        Object.defineProperty(state, "pending", {
          get: () => {
            looked += 1
            return [undefined]
          }
        })
      }
      const before = looked
      for (let at = 0; at < 100; at++) await residents.find(`more-${at}`)
      return looked - before
    }
    const few = await looks(100)
    const many = await looks(10_000)
    expect(few).toBeGreaterThan(0)
    expect(many).toBeLessThanOrEqual(400)
    expect(few).toBeLessThanOrEqual(400)
  })
})

it("lets those go that are not idle but can come back as they are, when there are too many", async () => {
  const { names, releasable, residents } = immediate(2)
  for (const name of ["a", "b"]) (await residents.find(name)).unsyncedSequence = 1
  releasable.add("b")
  await residents.find("c")
  expect(names()).toEqual(["a", "c"])
  await residents.idle()
})

it("does not look for those that have gone when the line is shortened", async () => {
  const { names, residents } = immediate(300)
  for (let at = 0; at < 200; at++) await residents.find(`log-${at}`)
  for (let at = 0; at < 190; at++) residents.forget(`log-${at}`)
  await residents.find("another")
  expect(names()).toHaveLength(11)
})
