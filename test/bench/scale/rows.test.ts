// Goal: the scale benchmark says what it measured, in the right direction. Method: its arithmetic on made-up results.
import { expect, it } from "vitest"
import { creationRows, startRows } from "../scale.bench.ts"

const samples = (perSecond: number) => [{ perSecond, cpuMicroseconds: 100 }]

it("judges creations among many by their share of the first rate", () => {
  const rows = (last: number) => creationRows({ first: samples(1000), last: samples(last), head: 4 }, 100_000)
  const name = "1,000 conversations more, beside 100,000"
  expect(rows(800).find((row) => row.name === name)).toMatchObject({ ratio: 0.8, target: 0.8, met: true })
  expect(rows(790).find((row) => row.name === name)).toMatchObject({ ratio: 0.79, met: false })
})

it("judges a start by the time until it listens, and by what is missing after it", () => {
  const start = (wallMs: number) => [{ wallMs, cpuMs: undefined }]
  const rows = (wallMs: number, missing: number) =>
    startRows({ empty: start(500), dirty: start(wallMs) }, { dirty: 100_000, missing, caughtUpMs: 1 })
  const met = (of: ReturnType<typeof rows>) => of.flatMap((row) => (row.met === undefined ? [] : [row.met]))
  expect(met(rows(3000, 0))).toEqual([true, true])
  expect(met(rows(3001, 1))).toEqual([false, false])
})
