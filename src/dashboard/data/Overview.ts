// Figures of the server, asked for every two seconds while they are looked at, and kept for a few minutes to draw.
import { signal } from "@preact/signals"
import type { Answer, ConversationItem } from "../../client/Client.ts"
import { client, failureText } from "./Connection.ts"

export type Figures = Readonly<Record<string, unknown>>

export interface Sample {
  readonly atMs: number
  readonly figures: Figures
}

export const samples = signal<ReadonlyArray<Sample>>([])
export type Window = NonNullable<Extract<Answer<"stats">, { readonly turns: number }>["window"]>
export const day = signal<Window | undefined>(undefined)
export const recent = signal<ReadonlyArray<ConversationItem>>([])
export const overviewFailure = signal("")

const everyMs = 2_000
const kept = 150
const slowEvery = 10

export const chartDays = 14
export const fortnight = signal<Window | undefined>(undefined)
export const serverInfo = signal<Answer<"server.info"> | undefined>(undefined)

const windowOf = async (window: string): Promise<Window> =>
  ((await client().call("stats", { window })) as { readonly window: Window }).window

const askSlow = async (): Promise<void> => {
  const [{ items }, today, info] = await Promise.all([
    client().call("conversation.list", { limit: 200 }),
    windowOf("24h"),
    client().call("server.info", {})
  ])
  recent.value = items
  day.value = today
  serverInfo.value = info
  fortnight.value = await windowOf(`${chartDays}d`)
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
