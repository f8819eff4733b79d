// Typed appends: a draft gets its place, is checked against its schema, becomes JSON, a frame and a checksum, and is
// durable when its turn in the loop ends. Once through the rune store alone, once with the catalog that follows it.
import { join } from "node:path"
import { Runelog } from "#runelog/Runelog.ts"
import { secureIdSource } from "#src/rune/IdSource.ts"
import { makeAgentId, makeConversationId, makeRequestId, makeRuneId, turnIdOf } from "#src/rune/Ids.ts"
import { encode, type RuneDraft, stamp } from "#src/rune/Rune.ts"
import { RuneStore } from "#src/store/runes/RuneStore.ts"
import { openStore } from "../../support/store/openStore.ts"
import type { Row } from "../Bench.ts"
import { makeRaw, rawName } from "../runelog/raw.ts"
import { comparedRow, detailRows, rateRow } from "../runelog/rows.ts"
import { drive, type Results, type Subject, timed } from "../runelog/sampling.ts"
import { bodyBytes } from "../runelog/settings.ts"

export const outstandingCounts: ReadonlyArray<number> = [256, 4096]

const ids = secureIdSource()
const conversationId = makeConversationId(ids)

const draft: RuneDraft = {
  kind: "turn.assistant_delta",
  agent_id: makeAgentId(ids),
  turn_id: turnIdOf(1),
  payload: { content: "so the parser keeps its place", request_id: makeRequestId(ids) }
}

interface Opened {
  readonly runes: RuneStore
  readonly runelog: Runelog
  readonly close: () => Promise<void>
}

type Scope = "rune store" | "whole store"

const openers: Readonly<Record<Scope, (directory: string) => Promise<Opened>>> = {
  "rune store": async (directory) => {
    const runelog = await Runelog.open({ directory })
    return { runelog, runes: new RuneStore({ runelog }), close: () => runelog.close() }
  },
  "whole store": async (directory) => {
    const store = await openStore({ directory, snapshotShape: "bench" })
    return { runelog: store.runelog, runes: store.runes, close: () => store.close() }
  }
}

/** One data directory and the event ids of its one conversation; rows that differ in outstanding appends share it. */
class Typed {
  private readonly directory: string
  private readonly scope: Scope
  private opened: Opened | undefined
  private next = 1

  constructor(directory: string, scope: Scope) {
    this.directory = join(directory, `typed-${scope.replace(" ", "-")}`)
    this.scope = scope
  }

  private readonly append = (): Promise<void> => {
    const place = {
      event_id: this.next,
      rune_id: makeRuneId(ids),
      conversation_id: conversationId,
      ts_ms: Date.now()
    }
    this.next += 1
    return this.opened!.runes.appendNow(conversationId, [stamp(draft, place)])
  }

  subject(outstanding: number): Subject {
    return {
      name: typedName(outstanding, this.scope),
      prepare: async () => {
        this.opened ??= await openers[this.scope](this.directory)
      },
      sample: (seconds) =>
        timed((latency, startedMs) => {
          const endMs = startedMs + seconds * 1000
          return drive({ outstanding, append: this.append, isOver: (nowMs) => nowMs >= endMs }, latency)
        }),
      settle: async () => this.opened?.runelog.checkpoint(),
      close: async () => {
        const { opened } = this
        this.opened = undefined
        await opened?.close()
      }
    }
  }
}

export const typedName = (outstanding: number, scope: Scope): string =>
  `typed append, ${scope}, ${outstanding} outstanding`

export const makeTypedSubjects = (directory: string): ReadonlyArray<Subject> => {
  const alone = new Typed(directory, "rune store")
  const whole = new Typed(directory, "whole store")
  return outstandingCounts.flatMap((count) => [makeRaw(directory, count), alone.subject(count), whole.subject(count)])
}

/** The share of the limit that is asked of a typed append. */
const shareOfRaw: ReadonlyMap<number, number> = new Map([
  [256, 0.3],
  [4096, 0.2]
])

const unit = "appends/s"

/** Latencies and processor time, each beside that of the limit. */
const detailsBeside = (results: Results, name: string, limit: string): ReadonlyArray<Row> => {
  const limits = detailRows(results, limit)
  return detailRows(results, name).map((row, at) => comparedRow(row, limits[at]!))
}

export const typedRows = (results: Results): ReadonlyArray<Row> => {
  const place = { event_id: 1, rune_id: makeRuneId(ids), conversation_id: conversationId, ts_ms: 1_763_251_200_000 }
  const size: Row = {
    name: "typed append, bytes of one rune",
    value: encode(stamp(draft, place)).length,
    unit: "bytes"
  }
  const rawSize: Row = { name: "raw group commit, bytes of one record", value: bodyBytes, unit: "bytes" }
  const rows = outstandingCounts.flatMap((count) => {
    const raw = rateRow(results, rawName(count), unit)
    const alone = typedName(count, "rune store")
    const whole = typedName(count, "whole store")
    return [
      raw,
      ...detailRows(results, rawName(count)),
      comparedRow(rateRow(results, alone, unit), raw, { atLeast: shareOfRaw.get(count)! }),
      ...detailsBeside(results, alone, rawName(count)),
      comparedRow(rateRow(results, whole, unit), raw),
      ...detailsBeside(results, whole, rawName(count))
    ]
  })
  return [rawSize, size, ...rows]
}
