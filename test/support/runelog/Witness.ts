// What a parent process knows of logs that a child writes: which events were acknowledged, and by which run of the
// child. Bodies say themselves which event, run and batch they belong to, so that every event can be judged, also
// those of which the parent never heard.
import type { Entry } from "#runelog/commit/Entry.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import type { Frame } from "#runelog/segment/Reader.ts"
import { Violation } from "./LogModel.ts"

export interface WitnessEvent {
  readonly log: string
  readonly eventId: number
  /** Counts the processes that wrote to the directory. */
  readonly run: number
  readonly batchFirst: number
  readonly batchSize: number
}

const STREAM = 1
const SUPERSEDES_EVERY = 10

const roleOf = (eventId: number): Entry["role"] =>
  eventId % SUPERSEDES_EVERY === 0 ? "supersedes" : eventId % 2 === 1 ? "delta" : undefined

const bodyOf = ({ log, eventId, run, batchFirst, batchSize }: WitnessEvent): string => {
  const head = `${log} ${eventId} ${run} ${batchFirst} ${batchSize} `
  // Lengths vary, so that frames end anywhere in a sector; now and then one is larger than a segment's slice.
  const bytes = eventId % 97 === 0 ? 5000 : (eventId * 37) % 300
  return head + "RUNE.".repeat(Math.ceil(bytes / 5)).slice(0, bytes)
}

export const witnessEntry = (event: WitnessEvent): Entry => {
  const role = roleOf(event.eventId)
  return { body: bodyOf(event), stream: STREAM, ...(role && { role }) }
}

/** The entries of one batch. */
export const witnessBatch = (batch: Omit<WitnessEvent, "eventId">): ReadonlyArray<Entry> =>
  Array.from({ length: batch.batchSize }, (_, index) => witnessEntry({ ...batch, eventId: batch.batchFirst + index }))

const parseEvent = (log: string, frame: Frame): WitnessEvent => {
  const body = frame.body.toString("utf8")
  const [name, eventId, run, batchFirst, batchSize] = body.split(" ", 5)
  const event = {
    log: name ?? "",
    eventId: Number(eventId),
    run: Number(run),
    batchFirst: Number(batchFirst),
    batchSize: Number(batchSize)
  }
  const isRight = event.log === log && event.eventId === frame.eventId && bodyOf(event) === body
  if (!isRight) throw new Violation(`${log}: event ${frame.eventId} has other bytes than were written`)
  return event
}

interface Known {
  /** Per event, the run that acknowledged it. */
  readonly runs: Array<number>
  /** A removal was announced whose outcome the parent has not heard. */
  mayBeGone: boolean
}

export class Witness {
  readonly #logs = new Map<string, Known>()
  acknowledged = 0

  #known(log: string): Known {
    const known = this.#logs.get(log) ?? { runs: [], mayBeGone: false }
    this.#logs.set(log, known)
    return known
  }

  /** Takes one line of a child; see `acknowledge`, `announceRemoval` and `removed` of the children. */
  hear(line: string): void {
    const [what, log, first, size, run] = line.split(" ")
    if (log === undefined || log === "") return
    const known = this.#known(log)
    if (what === "removing") known.mayBeGone = true
    if (what === "removed") this.#logs.set(log, { runs: [], mayBeGone: false })
    if (what !== "ack") return
    // An event that was known comes again: the removal did happen, and this is the log's next life.
    if (known.mayBeGone && Number(first) <= known.runs.length) {
      known.runs.length = 0
      known.mayBeGone = false
    }
    for (let index = 0; index < Number(size); index++) known.runs[Number(first) - 1 + index] = Number(run)
    this.acknowledged += Number(size)
  }

  /** Compares all logs with what was heard; what is found becomes what must be found from now on. */
  async check(runelog: Runelog): Promise<number> {
    if (runelog.readOnly !== undefined)
      throw new Violation(`the journal counts as damaged: ${runelog.readOnly.message}`)
    let events = 0
    const names = new Set([...this.#logs.keys(), ...(await runelog.list())])
    for (const log of names) events += await this.#checkLog(runelog, log)
    return events
  }

  async #checkLog(runelog: Runelog, log: string): Promise<number> {
    const known = this.#known(log)
    const head = await runelog.head(log)
    if (known.mayBeGone && head < known.runs.length) known.runs.length = 0
    if (head < known.runs.length) {
      throw new Violation(`${log}: ends at ${head}, but ${known.runs.length} was acknowledged`)
    }
    if (head > 0) await this.#readAll(runelog, log, head)
    known.mayBeGone = false
    return head
  }

  async #readAll(runelog: Runelog, log: string, head: number): Promise<void> {
    const { runs } = this.#known(log)
    let after = 0
    let last: WitnessEvent | undefined
    while (after < head) {
      const page = await runelog.read(log, { after })
      for (const frame of page.frames) {
        if (frame.eventId !== after + 1) throw new Violation(`${log}: event ${after + 1} is missing`)
        after = frame.lastEventId
        if (frame.kind === "thinned") checkThinned(log, frame, head)
        else last = this.#checkEvent(parseEvent(log, frame), runs)
      }
      if (page.next !== after) throw new Violation(`${log}: a page ends at ${after} and says ${page.next}`)
    }
    if (last !== undefined && last.eventId === head && last.batchFirst + last.batchSize - 1 !== head) {
      throw new Violation(`${log}: ends inside a batch at ${head}`)
    }
  }

  #checkEvent(event: WitnessEvent, runs: Array<number>): WitnessEvent {
    const acknowledgedBy = runs[event.eventId - 1]
    if (acknowledgedBy !== undefined && acknowledgedBy !== event.run) {
      throw new Violation(
        `${event.log}: event ${event.eventId} is of run ${event.run}, but run ${acknowledgedBy} acknowledged it`
      )
    }
    runs[event.eventId - 1] = event.run
    return event
  }
}

const checkThinned = (log: string, { eventId, lastEventId }: Frame, head: number): void => {
  const supersededBy = Math.ceil((lastEventId + 1) / SUPERSEDES_EVERY) * SUPERSEDES_EVERY
  for (let id = eventId; id <= lastEventId; id++) {
    if (roleOf(id) !== "delta" || supersededBy > head) throw new Violation(`${log}: event ${id} was thinned away`)
  }
}
