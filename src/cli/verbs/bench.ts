// `echs bench`: measures a running server from here: a read, a durable change, and the time from a change to its rune in
// a tail. Creates one conversation and closes it at the end.
import type { Client } from "../../client/Client.ts"
import { makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { exitCode, type Verb } from "../Verb.ts"
import { wholeNumber } from "../VerbSpec.ts"

export interface Measured {
  readonly name: string
  readonly count: number
  readonly p50_ms: number
  readonly p99_ms: number
  readonly per_second: number
}

const quantile = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0

const measure = async (name: string, count: number, once: (index: number) => Promise<void>): Promise<Measured> => {
  const times: Array<number> = []
  const startedMs = performance.now()
  for (let index = 0; index < count; index += 1) {
    const beganMs = performance.now()
    await once(index)
    times.push(performance.now() - beganMs)
  }
  const tookMs = performance.now() - startedMs
  times.sort((left, right) => left - right)
  return {
    name,
    count,
    p50_ms: quantile(times, 0.5),
    p99_ms: quantile(times, 0.99),
    per_second: (count / tookMs) * 1_000
  }
}

/** From the call that pauses or resumes to its rune in a tail. */
const measureTail = async (client: Client, conversationId: string, count: number): Promise<Measured> => {
  const tail = client.tail(conversationId, { after: "tail", kinds: ["session.*"] })
  await tail.next()
  const measured = await measure("change to rune in a tail", count, async (index) => {
    const op = index % 2 === 0 ? "conversation.pause" : "conversation.resume"
    const [, next] = await Promise.all([client.call(op, { conversation_id: conversationId }), tail.next()])
    if (next.done === true) throw new Error("the tail ended")
  })
  await tail.return()
  return measured
}

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "bench",
    options: {
      count: { type: "string", short: "n", value: "COUNT", help: "repetitions of each measurement (default 200)" }
    },
    example: "echs bench --count 1000",
    run: async ({ answer, client, terminal, values }) => {
      const asked = wholeNumber("count", values.count, 2) ?? 200
      const count = asked + (asked % 2)
      const { conversation_id: id } = await client.call("conversation.create", {
        title: "bench",
        model: "scripted/echo"
      })
      const measured = [
        await measure("read (stats)", count, async () => void (await client.call("stats", {}))),
        await measure("durable change", count, async (index) => {
          await client.call(index % 2 === 0 ? "conversation.pause" : "conversation.resume", { conversation_id: id })
        }),
        await measureTail(client, id, count)
      ]
      await client.call("conversation.close", { conversation_id: id, reason: "the bench is over" })
      answer({ measured }, () =>
        measured
          .map(
            ({ name, p50_ms: p50, p99_ms: p99, per_second: rate }) =>
              `${name.padEnd(26)} ${terminal.paint("strong", `${rate.toFixed(0)}/s`)}  p50 ${p50.toFixed(2)} ms  p99 ${p99.toFixed(2)} ms\n`
          )
          .join("")
      )
      return exitCode.done
    }
  })
