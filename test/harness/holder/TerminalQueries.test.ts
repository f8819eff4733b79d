/** Goal: what a program says to its terminal is found wherever the output is torn, and nothing else is. */
import { describe, expect, it } from "vitest"
import { encodeFrame, type Frame, FrameReader } from "#src/harness/holder/Frames.ts"
import { TerminalQueries } from "#src/harness/holder/TerminalQueries.ts"
import { randomFrom, seedFor } from "../../support/seed.ts"

const escape = "\u001b"
const bell = "\u0007"

const said = [
  `hello ${escape}[31mred${escape}[0m`,
  `${escape}]7501;?${escape}\\`,
  `${escape}]7501;state=idle:app=claude-code${bell}`,
  `${escape}]0;a title${bell} text`,
  `${escape}]7501;state=blocked:app=claude-code:kind=permission:msg=eA==${escape}\\`,
  `${escape}]11;?${bell}`,
  `${escape}]7501;state=unheard${bell}`,
  `${escape}]7501;state=working${bell}`
].join("")

const torn = (bytes: Buffer, random: () => number): ReadonlyArray<Buffer> => {
  const pieces: Array<Buffer> = []
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + Math.floor(random() * 12)
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return pieces
}

describe("what a program says to its terminal", () => {
  it("is found however the output is torn", () => {
    const random = randomFrom(seedFor("torn terminal output"))
    for (let run = 0; run < 200; run += 1) {
      const queries = new TerminalQueries()
      const found = torn(Buffer.from(said), random).map((piece) => queries.read(piece))
      expect(found.flatMap(({ statuses }) => statuses)).toEqual(["idle", "blocked", "working"])
      expect(found.filter(({ asksStatus }) => asksStatus)).toHaveLength(1)
      expect(found.flatMap(({ asksColors }) => asksColors)).toEqual(["11"])
    }
  })

  it("keeps no more of an unfinished sequence than its limit", () => {
    const queries = new TerminalQueries()
    queries.read(Buffer.from(`${escape}]7501;${"x".repeat(100_000)}`))
    expect(queries.read(Buffer.from(`${bell}${escape}]7501;state=done${bell}`)).statuses).toEqual(["done"])
  })
})

describe("frames", () => {
  const frames: ReadonlyArray<Frame> = [
    { type: "hello", value: { role: "typist", owner: true, columns: 80, rows: 24 } },
    { type: "output", bytes: Buffer.from([0xc3]) },
    { type: "output", bytes: Buffer.from([0xa4, 0, 255]) },
    { type: "exit", value: { exitCode: 0, signal: 9 } },
    { type: "input", bytes: Buffer.alloc(70_000, 1) }
  ]

  it("come out as they went in, however the stream is torn", () => {
    const random = randomFrom(seedFor("torn frames"))
    const bytes = Buffer.concat(frames.map(encodeFrame))
    const reader = new FrameReader()
    const read = torn(bytes, () => random() * 300).flatMap((piece) => reader.push(piece))
    expect(read).toEqual(frames)
  })

  it("are refused where they are too large, unknown or not JSON", () => {
    const header = (type: number, length: number): Buffer => {
      const buffer = Buffer.alloc(5)
      buffer.writeUInt8(type, 0)
      buffer.writeUInt32LE(length, 1)
      return buffer
    }
    expect(() => new FrameReader().push(header(3, 2 ** 31))).toThrow("too large")
    expect(() => new FrameReader().push(header(99, 0))).toThrow("unknown")
    expect(() => new FrameReader().push(Buffer.concat([header(1, 1), Buffer.from("{")]))).toThrow("not JSON")
  })
})
