// Whole turns: many conversations with the scripted provider, each asking again as soon as it has its answer. A turn
// counts when its end is durable.
import { join } from "node:path"
import type { ConversationId } from "#src/rune/Ids.ts"
import type { Row } from "../Bench.ts"
import { found, rateRow } from "../runelog/rows.ts"
import { drive, type Results, type Subject, timed } from "../runelog/sampling.ts"
import { BenchRuntime } from "./openRuntime.ts"
import { speakers } from "./settings.ts"

const name = `ECHS, turns of ${speakers} conversations with the scripted provider`
const input = "Say what is wrong with the second test, and what to do about it."

export const makeSpeaking = (directory: string): Subject => {
  let runtime: BenchRuntime | undefined
  let ids: ReadonlyArray<ConversationId> = []
  return {
    name,
    prepare: async () => {
      runtime = await BenchRuntime.open(join(directory, "speaking"))
    },
    sample: async (seconds) => {
      const open = runtime!
      // New ones each time: a conversation that has gone on for long sends a longer request.
      ids = await open.createMany(speakers, "scripted/echo")
      return timed((latency, startedMs) => {
        const endMs = startedMs + seconds * 1000
        const append = (speaker: number): Promise<string> => open.turn(ids[speaker]!, input)
        return drive({ outstanding: speakers, append, isOver: (nowMs) => nowMs >= endMs }, latency)
      })
    },
    settle: () => runtime!.store.runelog.checkpoint(),
    close: async () => runtime?.close()
  }
}

export const speakingRows = (results: Results): ReadonlyArray<Row> => {
  const { cpuMicrosecondsPerItem, p50Ms, p99Ms } = found(results, name)
  return [
    rateRow(results, name, "turns/s"),
    { name: `${name}: p50`, value: p50Ms, unit: "ms" },
    { name: `${name}: p99`, value: p99Ms, unit: "ms" },
    { name: `${name}: processor time`, value: cpuMicrosecondsPerItem, unit: "µs/turn" }
  ]
}
