// What a streamed piece of text costs: through adapter, coalescer, actor and log until its turn has ended and all is
// durable, beside the bare loop of the official SDK on the same fake server. Both hear the same bytes.
import { join } from "node:path"
import { serverKey, type WireFormat } from "../../support/provider-server/Server.ts"
import type { Row } from "../Bench.ts"
import { comparedRow, found } from "../runelog/rows.ts"
import { nothing, type Results, type Subject, timed } from "../runelog/sampling.ts"
import { type BareLoop, makeBareLoops } from "./bareSdk.ts"
import { BenchRuntime } from "./openRuntime.ts"
import { streams } from "./settings.ts"
import { answerOf, modelOf, type StreamShape } from "./streamShape.ts"

const wireFormats: ReadonlyArray<WireFormat> = ["chat", "responses", "messages"]

/** Fifty pieces a second, as a model speaks; or as fast as the server can. */
const paces = { paced: 20, unpaced: 0 } as const
type Pace = keyof typeof paces

const DELTAS_PER_SECOND_OF_SAMPLE = 200
const input = "Say what is wrong with the second test."

const shapeFor = (pace: Pace, seconds: number): StreamShape => ({
  deltas: Math.max(20, Math.round(DELTAS_PER_SECOND_OF_SAMPLE * seconds)),
  paceMs: paces[pace]
})

type Side = "bare SDK" | "ECHS"

const nameOf = (side: Side, format: WireFormat, pace: Pace): string =>
  `${side}, ${streams} ${format} streams${pace === "paced" ? "" : " without pause"}`

const checkText = (heard: string, expected: string): void => {
  if (heard !== expected) throw new Error(`${heard.length} characters were heard instead of ${expected.length}`)
}

const makeBare = (loop: BareLoop, format: WireFormat, pace: Pace): Subject => ({
  name: nameOf("bare SDK", format, pace),
  prepare: nothing,
  sample: (seconds) => {
    const shape = shapeFor(pace, seconds)
    const expected = answerOf(shape).text!
    return timed(async () => {
      const heard = await Promise.all(Array.from({ length: streams }, () => loop(modelOf(shape), input)))
      for (const { text } of heard) checkText(text, expected)
      return heard.reduce((sum, { deltas }) => sum + deltas, 0)
    })
  },
  settle: nothing,
  close: nothing
})

const makeOurs = (runtime: BenchRuntime, format: WireFormat, pace: Pace): Subject => ({
  name: nameOf("ECHS", format, pace),
  prepare: nothing,
  sample: async (seconds) => {
    const shape = shapeFor(pace, seconds)
    const expected = answerOf(shape).text!
    const ids = await runtime.createMany(streams, `${format}/${modelOf(shape)}`)
    const sample = await timed(async () => {
      const heard = await Promise.all(ids.map((id) => runtime.turn(id, input)))
      for (const text of heard) checkText(text, expected)
      return streams * shape.deltas
    })
    return sample
  },
  settle: () => runtime.store.runelog.checkpoint(),
  close: nothing
})

const providersAt = (url: string) =>
  ({
    responses: { adapter: "openai-responses", baseUrl: `${url}/v1`, keyVariable: "BENCH_KEY" },
    chat: { adapter: "openai-chat", baseUrl: `${url}/v1`, keyVariable: "BENCH_KEY" },
    messages: { adapter: "anthropic", baseUrl: url, keyVariable: "BENCH_KEY" }
  }) as const

export interface Streaming {
  readonly subjects: ReadonlyArray<Subject>
  readonly close: () => Promise<void>
}

const pairs: ReadonlyArray<readonly [WireFormat, Pace]> = [
  ...wireFormats.map((format) => [format, "paced"] as const),
  ["chat", "unpaced"]
]

export const openStreaming = async (directory: string, serverUrl: string): Promise<Streaming> => {
  const runtime = await BenchRuntime.open(join(directory, "streaming"), {
    providers: providersAt(serverUrl),
    key: serverKey
  })
  const loops = makeBareLoops(serverUrl)
  const subjects = pairs.flatMap(([format, pace]) => [
    makeBare(loops[format], format, pace),
    makeOurs(runtime, format, pace)
  ])
  return { subjects, close: () => runtime.close() }
}

const costRows = (results: Results, format: WireFormat, pace: Pace): ReadonlyArray<Row> => {
  const row = (side: Side): Row => {
    const name = nameOf(side, format, pace)
    return { name, value: found(results, name).cpuMicrosecondsPerItem, unit: "µs of processor/delta" }
  }
  const wall = (side: Side): Row => {
    const name = nameOf(side, format, pace)
    return { name: `${name}: wall`, value: 1e6 / found(results, name).perSecond, unit: "µs/delta" }
  }
  const bare = row("bare SDK")
  const bareWall = wall("bare SDK")
  const aim = pace === "paced" ? { atMost: 1.5 } : undefined
  return [bare, comparedRow(row("ECHS"), bare, aim), bareWall, comparedRow(wall("ECHS"), bareWall)]
}

export const streamingRows = (results: Results): ReadonlyArray<Row> =>
  pairs.flatMap(([format, pace]) => costRows(results, format, pace))
