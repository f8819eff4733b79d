// Holds the catalog against the logs: after a crash every row, else only whether rows are missing or surplus. Runs
// beside everything else, a few logs at a time; what is in doubt is folded again.
import { elementAt } from "../../rune/Elements.ts"
import { limits } from "../StoreLimits.ts"

export interface CheckSubject {
  /** Every conversation there is, in the log or archived. */
  readonly conversations: () => Promise<Iterable<string>>
  readonly head: (conversationId: string) => Promise<number>
  /** The newest event that the row of a conversation knows of. */
  readonly known: (conversationId: string) => number | undefined
  /** The next rows by id, each with the newest event it knows of. */
  readonly rows: (
    after: string,
    count: number
  ) => ReadonlyArray<{ readonly conversationId: string; readonly head: number }>
  readonly doubt: (conversationId: string) => void
  /** Folds what is in doubt. */
  readonly flush: () => Promise<void>
  readonly doubted: () => number
  readonly isClosed: () => boolean
}

export interface CheckOptions {
  /** Looked at first. */
  readonly suspects?: Iterable<string>
  /** The suspects alone; whether every conversation has a row and every row a conversation; or every row's head too. */
  readonly only: "suspects" | "presence" | "all"
}

export interface CheckReport {
  readonly checked: number
  readonly doubted: number
  readonly surplus: number
}

const ROWS_PER_SLICE = 1000
/** Heads may all be in memory: others get their turn after so many of them. */
const HEADS_PER_TURN = 64

export const checkCatalog = async (subject: CheckSubject, options: CheckOptions): Promise<CheckReport> => {
  const suspects = new Set(options.suspects ?? [])
  let doubted = await compare(subject, [...suspects], subject.known)
  if (options.only === "suspects") return { checked: suspects.size, doubted, surplus: 0 }
  const known = await knownHeads(subject)
  const there = new Set(await subject.conversations())
  let surplus = 0
  for (const conversationId of known.keys()) {
    if (there.has(conversationId)) continue
    subject.doubt(conversationId)
    surplus += 1
  }
  await subject.flush()
  const rest = [...there].filter((one) => !suspects.has(one) && (options.only === "all" || !known.has(one)))
  doubted += await compare(subject, rest, (one) => known.get(one))
  return { checked: suspects.size + rest.length, doubted, surplus }
}

const compare = async (
  subject: CheckSubject,
  conversationIds: ReadonlyArray<string>,
  known: (conversationId: string) => number | undefined
): Promise<number> => {
  let next = 0
  let doubted = 0
  const lane = async (): Promise<void> => {
    for (let at = next++; at < conversationIds.length && !subject.isClosed(); at = next++) {
      const conversationId = elementAt(conversationIds, at)
      if (at % HEADS_PER_TURN === 0) await nextTurn()
      // A log that cannot be opened is in doubt; its row will say why.
      const head = await subject.head(conversationId).catch(() => -1)
      if (head === (known(conversationId) ?? 0)) continue
      subject.doubt(conversationId)
      doubted += 1
      if (subject.doubted() >= limits.catalogSliceRows) await subject.flush()
    }
  }
  await Promise.all(Array.from({ length: limits.catalogReaders }, lane))
  await subject.flush()
  return doubted
}

const knownHeads = async (subject: CheckSubject): Promise<Map<string, number>> => {
  const heads = new Map<string, number>()
  for (let after = ""; ; ) {
    const slice = subject.rows(after, ROWS_PER_SLICE)
    for (const { conversationId, head } of slice) heads.set(conversationId, head)
    const last = slice[slice.length - 1]
    if (last === undefined) return heads
    after = last.conversationId
    // Others may have something to do between two slices.
    await nextTurn()
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
