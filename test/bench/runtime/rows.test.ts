// Goal: the runtime benchmark says what it measured, in the right direction. Method: its arithmetic on made-up results,
// and the answers of the fake provider as the bare loops hear them.
import { describe, expect, it } from "vitest"
import { fragments } from "../../support/provider-server/Answer.ts"
import type { Row } from "../Bench.ts"
import { rawName } from "../runelog/raw.ts"
import type { Summary } from "../runelog/sampling.ts"
import { replayNames, replayRows } from "./replaying.ts"
import { streamingRows } from "./streaming.ts"
import { answerOf, modelOf, shapeOf } from "./streamShape.ts"
import { typedName, typedRows } from "./typedAppend.ts"

const summary = (perSecond: number, cpuMicrosecondsPerItem = 1): Summary => ({
  perSecond,
  cpuMicrosecondsPerItem,
  p50Ms: 1,
  p99Ms: 2,
  checkpoints: 0,
  slowestPerSecond: perSecond,
  fastestPerSecond: perSecond
})

const rowNamed = (rows: ReadonlyArray<Row>, name: string): Row => {
  const found = rows.find((row) => row.name === name)
  expect(found, name).toBeDefined()
  return found!
}

describe("rows of the runtime benchmark", () => {
  it("judge a typed append by its share of the raw rate", () => {
    const results = new Map(
      [256, 4096].flatMap((count) => [
        [rawName(count), summary(1000)] as const,
        [typedName(count, "rune store"), summary(250)] as const,
        [typedName(count, "whole store"), summary(200)] as const
      ])
    )
    const rows = typedRows(results)
    expect(rowNamed(rows, typedName(256, "rune store"))).toMatchObject({ ratio: 0.25, target: 0.3, met: false })
    expect(rowNamed(rows, typedName(4096, "rune store"))).toMatchObject({ ratio: 0.25, target: 0.2, met: true })
  })

  it("judge a replay by its share of the rate of parsing", () => {
    const rates = { replay: 600, read: 3000, decode: 700, parse: 1000 }
    const results = new Map(
      Object.entries(rates).map(([key, rate]) => [replayNames[key as keyof typeof rates], summary(rate)])
    )
    expect(rowNamed(replayRows(results), replayNames.replay)).toMatchObject({ ratio: 0.6, target: 0.5, met: true })
  })

  it("judge a stream by processor time, where less is better", () => {
    const names = ["chat", "responses", "messages"].map((format) => `50 ${format} streams`)
    const results = new Map(
      [...names, "50 chat streams without pause"].flatMap((name) => [
        [`bare SDK, ${name}`, summary(1000, 10)] as const,
        [`ECHS, ${name}`, summary(500, name.includes("chat") ? 14 : 16)] as const
      ])
    )
    const rows = streamingRows(results)
    expect(rowNamed(rows, "ECHS, 50 chat streams")).toMatchObject({ ratio: 1.4, target: 1.5, met: true })
    expect(rowNamed(rows, "ECHS, 50 messages streams")).toMatchObject({ ratio: 1.6, target: 1.5, met: false })
    expect(rowNamed(rows, "ECHS, 50 chat streams: wall")).toMatchObject({ value: 2000, ratio: 2 })
  })
})

describe("the shape of a stream", () => {
  it("is told through the name of the model", () => {
    const shape = { deltas: 37, paceMs: 20 }
    expect(shapeOf(modelOf(shape))).toEqual(shape)
    expect(() => shapeOf("test-model")).toThrow(/names no stream/)
  })

  it.each([1, 20, 137, 200])("has %i pieces when so many are asked for", (deltas) => {
    expect(fragments(answerOf({ deltas, paceMs: 0 }).text!)).toHaveLength(deltas)
  })
})
