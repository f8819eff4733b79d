// Goal: appends keep their order whatever makes them wait, and the wait is bounded. Method: an engine of a few lines that
// is busy on command.
import { describe, expect, it } from "vitest"
import { AppendQueue } from "#src/store/runes/AppendQueue.ts"

class Engine {
  busy = false
  readonly started: Array<string> = []
  readonly opened: Array<string> = []
  private waiters: Array<() => void> = []

  readonly queue = (waitingMax?: number) =>
    new AppendQueue({
      open: async (conversationId) => void this.opened.push(conversationId),
      isBusy: () => this.busy,
      ready: () => (this.busy ? new Promise((resolve) => this.waiters.push(resolve)) : Promise.resolve()),
      ...(waitingMax === undefined ? {} : { waitingMax })
    })

  append(name: string, options: { readonly terminal?: boolean; readonly fails?: boolean } = {}) {
    const start = async () => {
      this.started.push(name)
      if (options.fails === true) throw new Error(name)
    }
    return { start, terminal: options.terminal ?? false }
  }

  calm(): void {
    this.busy = false
    for (const resolve of this.waiters.splice(0)) resolve()
  }
}

const turns = async () => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe("the queue of appends", () => {
  it("opens a log once and then starts appends at once", async () => {
    const engine = new Engine()
    const queue = engine.queue()
    await Promise.all([queue.run("a", engine.append("1")), queue.run("a", engine.append("2"))])
    const third = queue.run("a", engine.append("3"))
    expect(engine.started).toEqual(["1", "2", "3"])
    await third
    expect(engine.opened).toEqual(["a"])
  })

  it("keeps everything of a conversation behind the one that waits, last words too", async () => {
    const engine = new Engine()
    const queue = engine.queue()
    await Promise.all([queue.run("a", engine.append("a0")), queue.run("b", engine.append("b0"))])
    engine.busy = true
    const waiting = [
      queue.run("a", engine.append("a1")),
      queue.run("a", engine.append("a2", { terminal: true })),
      queue.run("b", engine.append("b1", { terminal: true }))
    ]
    await turns()
    expect(engine.started).toEqual(["a0", "b0", "b1"])
    engine.calm()
    await Promise.all(waiting)
    expect(engine.started).toEqual(["a0", "b0", "b1", "a1", "a2"])
  })

  it("goes on waiting when it is busy again", async () => {
    const engine = new Engine()
    const queue = engine.queue()
    await queue.run("a", engine.append("0"))
    engine.busy = true
    const waiting = queue.run("a", engine.append("1"))
    await turns()
    engine.calm()
    engine.busy = true
    await turns()
    expect(engine.started).toEqual(["0"])
    engine.calm()
    await waiting
  })

  it("refuses what exceeds its bound and loses nothing else", async () => {
    const engine = new Engine()
    const queue = engine.queue(2)
    await queue.run("a", engine.append("0"))
    engine.busy = true
    const waiting = ["1", "2"].map((name) => queue.run("a", engine.append(name)))
    await expect(queue.run("a", engine.append("3"))).rejects.toMatchObject({ _tag: "AppendsWaiting", waitingMax: 2 })
    await expect(queue.run("a", engine.append("3"))).rejects.toThrow("2 appends of a are already waiting for the disk")
    engine.calm()
    await Promise.all(waiting)
    expect(engine.started).toEqual(["0", "1", "2"])
  })

  it("gives each its own failure, and a log that cannot be opened that of the engine", async () => {
    const engine = new Engine()
    const queue = new AppendQueue({
      open: () => Promise.reject(new Error("foreign file")),
      isBusy: () => false,
      ready: async () => undefined
    })
    const failed = queue.run("a", engine.append("1", { fails: true }))
    const fine = queue.run("a", engine.append("2"))
    await expect(failed).rejects.toThrow("1")
    await fine
  })

  it("forgets the logs that were opened longest ago", async () => {
    const engine = new Engine()
    const queue = engine.queue()
    for (let number = 0; number <= 10_000; number++) await queue.run(`c${number}`, engine.append("x"))
    await queue.run("c10000", engine.append("x"))
    await queue.run("c0", engine.append("x"))
    expect(engine.opened.length).toBe(10_002)
  })
})
