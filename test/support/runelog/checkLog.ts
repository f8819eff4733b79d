// Compares a runelog with the models of its logs: heads, whole contents, pages from every cursor, filters, the list of
// names. Throws a Violation that names the log and the event.

import type { Runelog } from "#runelog/Runelog.ts"
import type { Frame, Page, ReadFilter } from "#runelog/segment/Reader.ts"
import { type LogModel, Violation } from "./LogModel.ts"

export type Chance = () => number

const below = (chance: Chance, bound: number): number => Math.floor(chance() * bound)

/** More cursors than this are sampled instead of tried one by one. */
const cursorsMax = 12

export interface PageCheck {
  readonly after: number
  readonly filter?: ReadFilter
}

const passes = (frame: { readonly visibility: number; readonly family: number }, filter: ReadFilter | undefined) =>
  frame.visibility <= (filter?.visibilityMax ?? 2) && (filter?.families?.has(frame.family) ?? true)

const frameFault = (log: LogModel, frame: Frame): string | undefined => {
  const entry = log.entry(frame.eventId)
  if (entry === undefined) return "was never submitted"
  if (!entry.body.equals(frame.body)) return "has other bytes than were submitted"
  const same =
    frame.visibility === (entry.visibility ?? 0) &&
    frame.family === (entry.family ?? 0) &&
    frame.stream === (entry.stream ?? 0)
  return same ? undefined : "has another header than was submitted"
}

const thinnedFault = (log: LogModel, frame: Frame, head: number): string | undefined => {
  for (let eventId = frame.eventId; eventId <= frame.lastEventId; eventId++) {
    if (!log.mayBeThinned(eventId, head)) return `is thinned away although event ${eventId} was not superseded`
  }
  return undefined
}

/** Checks that a page continues its cursor without a gap, that what it leaves out may be left out, and every byte. */
export const checkPage = (log: LogModel, page: Page, { after, filter }: PageCheck): void => {
  const fail = (eventId: number, fault: string): never => {
    throw new Violation(`${log.name}: event ${eventId} ${fault}`)
  }
  let expected = after + 1
  const skipTo = (eventId: number): void => {
    for (; expected < eventId; expected++) {
      const entry = log.entry(expected)
      const hidden =
        entry !== undefined && !passes({ visibility: entry.visibility ?? 0, family: entry.family ?? 0 }, filter)
      if (!hidden) fail(expected, "is missing from a page")
    }
  }
  for (const frame of page.frames) {
    skipTo(frame.eventId)
    if (frame.eventId !== expected) fail(frame.eventId, `came where ${expected} belongs`)
    const fault = frame.kind === "thinned" ? thinnedFault(log, frame, page.head) : frameFault(log, frame)
    if (fault !== undefined) fail(frame.eventId, fault)
    if (frame.kind === "entry" && !passes(frame, filter)) fail(frame.eventId, "passed a filter that excludes it")
    expected = frame.lastEventId + 1
  }
  skipTo(page.next + 1)
  if (page.next !== expected - 1) fail(expected, `follows a page that says it ends at ${page.next}`)
  if (page.next === after && page.head > after) fail(after + 1, "is not reached by a page")
}

const readAll = async (runelog: Runelog, log: LogModel, head: number, bytesMax: number): Promise<void> => {
  let after = 0
  while (after < head) {
    const page = await runelog.read(log.name, { after, bytesMax })
    checkPage(log, page, { after })
    after = page.next
  }
  if (after !== head) throw new Violation(`${log.name}: pages end at ${after}, the head is ${head}`)
}

const filters: ReadonlyArray<ReadFilter> = [{ visibilityMax: 0 }, { visibilityMax: 1, families: new Set([1, 2]) }]

const readCursors = async (runelog: Runelog, log: LogModel, head: number, chance: Chance): Promise<void> => {
  const every = head <= cursorsMax
  const count = every ? head : 6
  for (let index = 0; index < count; index++) {
    const after = every ? index : below(chance, head)
    const filter = chance() < 0.3 ? filters[below(chance, filters.length)]! : undefined
    const page = await runelog.read(log.name, { after, bytesMax: 1 + below(chance, 3000), ...(filter && { filter }) })
    checkPage(log, page, { after, ...(filter && { filter }) })
  }
}

/** Checks one log after a restart and takes what it holds as the log from now on; returns its head. */
export const checkLog = async (runelog: Runelog, log: LogModel, chance: Chance): Promise<number> => {
  const head = await runelog.head(log.name)
  const fault = log.headFault(head)
  if (fault !== undefined) throw new Violation(`${log.name}: ${fault}`)
  if (head > 0) {
    await readAll(runelog, log, head, 1 + below(chance, 6000))
    await readCursors(runelog, log, head, chance)
  }
  log.settle(head)
  return head
}

/** Checks every log and the list of names after a restart; returns the number of events found. */
export const checkLogs = async (runelog: Runelog, logs: Iterable<LogModel>, chance: Chance): Promise<number> => {
  let events = 0
  const expected: Array<string> = []
  if (runelog.readOnly !== undefined) throw new Violation(`the journal counts as damaged: ${runelog.readOnly.message}`)
  for (const log of logs) {
    const head = await checkLog(runelog, log, chance)
    if (head > 0) expected.push(log.name)
    events += head
  }
  const names = await runelog.list()
  if (names.join() !== expected.sort().join()) {
    throw new Violation(`the list of logs is [${names.join()}] where [${expected.join()}] belongs`)
  }
  return events
}
