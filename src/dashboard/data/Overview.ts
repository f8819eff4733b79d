// Figures of the server, asked for every two seconds while they are looked at, and kept for a few minutes to draw.
import { signal } from "@preact/signals"
import type { ConversationItem } from "../../client/Client.ts"
import { client, failureText } from "./Connection.ts"

export type Figures = Readonly<Record<string, unknown>>

export interface Sample {
  readonly atMs: number
  readonly figures: Figures
}

export const samples = signal<ReadonlyArray<Sample>>([])
export const day = signal<Figures | undefined>(undefined)
export const recent = signal<ReadonlyArray<ConversationItem>>([])
export const overviewFailure = signal("")

const everyMs = 2_000
const kept = 150
const slowEvery = 10

const askSlow = async (): Promise<void> => {
  const [{ items }, stats] = await Promise.all([
    client().call("conversation.list", { limit: 200 }),
    client().call("stats", { window: "24h" })
  ])
  recent.value = items
  day.value = (stats as Figures)["window"] as Figures
}

export const followOverview = (): (() => void) => {
  let count = 0
  const ask = async (): Promise<void> => {
    try {
      if (count++ % slowEvery === 0) await askSlow()
      const figures = (await client().call("stats", {})) as Figures
      samples.value = [...samples.value.slice(-kept), { atMs: Date.now(), figures }]
      overviewFailure.value = ""
    } catch (error) {
      overviewFailure.value = failureText(error)
    }
  }
  void ask()
  const timer = setInterval(() => void ask(), everyMs)
  return () => clearInterval(timer)
}
