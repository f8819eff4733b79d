// The append rows: which subjects there are, in which order they take turns, and what is asked of them.
import type { Row } from "../Bench.ts"
import { filePerConversationName, type LineMode, lineName, makeFilePerConversation, makeJsonLines } from "./files.ts"
import { lmdbName, makeLmdb } from "./lmdb.ts"
import { Ours, oursName } from "./ours.ts"
import { makeRaw, rawName } from "./raw.ts"
import { aimedRow, comparedRow, detailRows, found, rateRow, unlessShown } from "./rows.ts"
import type { Results, Subject } from "./sampling.ts"
import {
  conversationCounts,
  conversationsKeyed,
  outstandingCounts,
  outstandingKeyed,
  rowsPerTransaction
} from "./settings.ts"
import { type Keying, makeSqlite, sqliteName } from "./sqlite.ts"

const keyings: ReadonlyArray<Keying> = ["keyed", "sequence"]
const lineModes: ReadonlyArray<LineMode> = ["appendFile", "appendFileSync"]
const flushes: ReadonlyArray<{ readonly flush: boolean }> = [{ flush: false }, { flush: true }]

export const makeAppendSubjects = (directory: string): ReadonlyArray<Subject> => {
  const single = new Ours(directory, 1)
  return [
    ...outstandingCounts.flatMap((count) => [makeRaw(directory, count), single.subject(count)]),
    ...conversationCounts.map((count) => new Ours(directory, count).subject(outstandingKeyed)),
    ...keyings.flatMap((keying) => [
      makeSqlite(directory, 1, keying),
      makeSqlite(directory, rowsPerTransaction, keying),
      makeLmdb(directory, outstandingKeyed, keying)
    ]),
    makeFilePerConversation(directory, outstandingKeyed),
    ...lineModes.flatMap((mode) => flushes.map((options) => makeJsonLines(directory, mode, options)))
  ]
}

const unit = "appends/s"

const rawRows = (results: Results): ReadonlyArray<Row> =>
  outstandingCounts.flatMap((count) => [rateRow(results, rawName(count), unit), ...detailRows(results, rawName(count))])

/** The share of the limit that is asked for, by outstanding appends on one conversation. */
const shareOfRaw: ReadonlyMap<number, number> = new Map([
  [256, 0.5],
  [4096, 0.5]
])

const singleRows = (results: Results): ReadonlyArray<Row> =>
  outstandingCounts.flatMap((count) => {
    const name = oursName(count, 1)
    const share = shareOfRaw.get(count)
    const aim = share === undefined ? undefined : { atLeast: share }
    return [
      comparedRow(rateRow(results, name, unit), rateRow(results, rawName(count), unit), aim),
      ...detailRows(results, name)
    ]
  })

const manyRows = (results: Results): ReadonlyArray<Row> =>
  conversationCounts.flatMap((count) => {
    const name = oursName(outstandingKeyed, count)
    const { checkpoints, p50Ms, p99Ms } = found(results, name)
    const isJudged = count === conversationsKeyed
    const rate = rateRow(results, name, unit)
    const limit = rateRow(results, rawName(outstandingKeyed), unit)
    const compared = comparedRow(rate, limit, isJudged ? { atLeast: 0.4 } : undefined)
    const spread: Row = { name: `${name}: ack p99 ÷ p50`, value: p99Ms / p50Ms, unit: "×" }
    return [
      isJudged ? unlessShown(compared, checkpoints > 0) : compared,
      ...detailRows(results, name),
      { name: `${name}: checkpoints while measured`, value: checkpoints, unit: "checkpoints" },
      isJudged ? unlessShown(aimedRow(spread, { atMost: 20 }), checkpoints > 0) : spread
    ]
  })

const rivalNames = (keying: Keying): ReadonlyArray<string> => [
  sqliteName(1, keying),
  sqliteName(rowsPerTransaction, keying),
  lmdbName(outstandingKeyed, keying)
]

const otherRows = (results: Results): ReadonlyArray<Row> =>
  [
    ...keyings.flatMap(rivalNames),
    filePerConversationName(outstandingKeyed),
    ...lineModes.flatMap((mode) => flushes.map((options) => lineName(mode, options)))
  ].map((name) => rateRow(results, name, unit))

const againstRow = (results: Results, ours: string, rival: string, atLeast: number): Row =>
  comparedRow({ ...rateRow(results, ours, unit), name: `${ours}, against ${rival}` }, rateRow(results, rival, unit), {
    atLeast
  })

const rivalTargets = (results: Results): ReadonlyArray<Row> => {
  const keyed = oursName(outstandingKeyed, conversationsKeyed)
  const [oneRow = "", manyRowsName = "", puts = ""] = rivalNames("keyed")
  const best = rivalNames("sequence").reduce((left, right) =>
    found(results, left).perSecond >= found(results, right).perSecond ? left : right
  )
  return [
    againstRow(results, keyed, oneRow, 40),
    againstRow(results, keyed, manyRowsName, 4),
    againstRow(results, keyed, puts, 3),
    againstRow(results, oursName(outstandingKeyed, 1), best, 1)
  ]
}

export const appendRows = (results: Results): ReadonlyArray<Row> => [
  ...rawRows(results),
  ...singleRows(results),
  ...manyRows(results),
  ...otherRows(results),
  ...rivalTargets(results)
]
