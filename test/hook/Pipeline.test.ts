// Goal: one hook at a time in a conversation and in a workspace, in the order in which they came, and nobody waits for
// those with whom nothing is shared. Method: tickets in the hands of the test, and real directories for what is shared.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { it as itEffect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { afterEach, describe, expect, it } from "vitest"
import { sharedDirectory } from "#src/config/HookFiles.ts"
import { hookLimits } from "#src/hook/HookLimits.ts"
import { HookPipelines } from "#src/hook/Pipeline.ts"
import { reportCount } from "../support/counts.ts"
import { randomFrom, seedFor } from "../support/seed.ts"

const place = (conversation_id: string, directory: string) => ({ conversation_id, directory })

describe("tickets", () => {
  const admitted = (pipelines: HookPipelines, places: ReadonlyArray<readonly [string, string]>) => {
    const order: Array<number> = []
    const tickets = places.map(([id, directory], at) => {
      const ticket = pipelines.take(place(id, directory))
      void ticket.ready.then(() => order.push(at))
      return ticket
    })
    return { order, tickets }
  }

  it("of one conversation, of one directory and of one within another wait for each other, others do not", async () => {
    const { order, tickets } = admitted(new HookPipelines(), [
      ["a", "/w"],
      ["a", "/elsewhere"],
      ["b", "/w"],
      ["c", "/w/below"],
      ["d", "/w-other"],
      ["e", "/"]
    ])
    await undefined
    expect(order).toEqual([0, 4])
    tickets[0]!.leave()
    await undefined
    expect(order).toEqual([0, 4, 1, 2])
    tickets[2]!.leave()
    await undefined
    expect(order).toEqual([0, 4, 1, 2, 3])
    for (const at of [1, 3, 4]) tickets[at]!.leave()
    await undefined
    expect(order).toEqual([0, 4, 1, 2, 3, 5])
  })

  it("that are given back before their turn let the next one pass", async () => {
    const { order, tickets } = admitted(new HookPipelines(), [
      ["a", "/w"],
      ["b", "/w"],
      ["c", "/w"]
    ])
    tickets[1]!.leave()
    tickets[0]!.leave()
    await undefined
    expect(order).toEqual([0, 2])
  })

  it("let the next one in when what still runs is over, however it ends", async () => {
    const { order, tickets } = admitted(new HookPipelines(), [
      ["a", "/w"],
      ["b", "/w"]
    ])
    const running = Effect.runFork(Effect.never)
    await Effect.runPromise(tickets[0]!.leaveAfter(running))
    await new Promise(setImmediate)
    expect(order).toEqual([0])
    running.interruptUnsafe()
    await new Promise(setImmediate)
    expect(order).toEqual([0, 1])
  })

  itEffect.effect("are not held for ever by a program that outlives its end", () =>
    Effect.gen(function* () {
      const { order, tickets } = admitted(new HookPipelines(), [
        ["a", "/w"],
        ["b", "/w"]
      ])
      yield* tickets[0]!.leaveAfter(Effect.runFork(Effect.never))
      yield* TestClock.adjust(hookLimits.leaveWithinMs - 1)
      expect(order).toEqual([0])
      yield* TestClock.adjust(1)
      yield* Effect.promise(() => Promise.resolve())
      expect(order).toEqual([0, 1])
    })
  )

  it("never let two in that share anything, and everybody in the end", async () => {
    const random = randomFrom(seedFor("hook pipelines"))
    const pick = <A>(values: ReadonlyArray<A>): A => values[Math.floor(random() * values.length)]!
    let served = 0
    for (let round = 0; round < 50; round += 1) {
      const pipelines = new HookPipelines()
      const inside: Array<{ readonly id: string; readonly directory: string }> = []
      const work = Array.from({ length: 30 }, async () => {
        const own = { id: pick(["a", "b", "c", "d"]), directory: pick(["/x", "/x/y", "/z", "/zz"]) }
        const ticket = pipelines.take(place(own.id, own.directory))
        await ticket.ready
        for (const other of inside) {
          expect(other.id).not.toBe(own.id)
          expect(`${other.directory}/`.startsWith(`${own.directory}/`)).toBe(false)
          expect(`${own.directory}/`.startsWith(`${other.directory}/`)).toBe(false)
        }
        inside.push(own)
        for (let left = Math.floor(random() * 4); left > 0; left -= 1) await undefined
        inside.splice(inside.indexOf(own), 1)
        ticket.leave()
        served += 1
      })
      await Promise.all(work)
    }
    expect(served).toBe(1_500)
    reportCount("hook tickets served, none beside one that shares a place", served)
  })
})

describe("what workspaces share", () => {
  const made: Array<string> = []
  const directory = (): string => {
    const path = mkdtempSync(join(tmpdir(), "echs-shared-"))
    made.push(path)
    return path
  }
  afterEach(() => {
    for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true })
  })

  it("is the real path, whatever links lead to it, and the repository where there is one", () => {
    const root = directory()
    mkdirSync(join(root, "repo", ".git"), { recursive: true })
    for (const name of ["a", "b"]) mkdirSync(join(root, "repo", name))
    mkdirSync(join(root, "plain"))
    symlinkSync(join(root, "plain"), join(root, "link"))
    expect(sharedDirectory(join(root, "link"))).toBe(sharedDirectory(join(root, "plain")))
    expect(sharedDirectory(join(root, "repo", "a"))).toBe(sharedDirectory(join(root, "repo", "b")))
    expect(sharedDirectory(join(root, "repo", "a"))).toBe(sharedDirectory(join(root, "repo")))
    expect(sharedDirectory(join(root, "plain"))).not.toBe(sharedDirectory(join(root, "repo")))
    expect(sharedDirectory(join(root, "gone"))).toBe(join(root, "gone"))
  })
})
