// What a verification found, while it is being collected. Problems are bounded in number: a directory that is all
// damage must not become a report that fills the memory.

export interface Problem {
  readonly file: string
  readonly offset: number
  readonly reason: string
  readonly log?: string
}

/** Something to know that is no fault: what a stop without warning leaves, and the next start puts in order. */
export interface Note {
  readonly file: string
  readonly text: string
  readonly log?: string
}

/** Looks into what a verification reads: one per look at the directory. */
export interface Inspection {
  /** Begins a log, or goes on with nothing; called with each of its events in their order. */
  readonly log: (log: string) => EventInspector
  /** Called last, with the files that the manifest says must be there: reads what the engine knows nothing of. */
  readonly finish: (findings: Findings, items: ReadonlyMap<string, string>) => Promise<void>
}

export interface InspectedEvent {
  readonly kind: "entry" | "thinned"
  readonly eventId: number
  readonly lastEventId: number
  readonly visibility: number
  readonly family: number
  readonly stream: number
  readonly body: Buffer
}

/** Returns what is wrong with the event. */
export type EventInspector = (
  event: InspectedEvent,
  place: { readonly file: string; readonly offset: number }
) => ReadonlyArray<string>

export interface VerifyReport {
  readonly logs: number
  readonly segments: number
  /** Segments with a seal whose digest matches. */
  readonly sealed: number
  /** Entries in segments. */
  readonly entries: number
  /** Events that were dropped as superseded, of which only a marker is left. */
  readonly thinnedEvents: number
  /** Batches of the journal that the next start applies. */
  readonly batches: number
  readonly bytes: number
  readonly problems: ReadonlyArray<Problem>
  readonly notes: ReadonlyArray<Note>
}

/** More than this is counted, not listed. */
export const FINDINGS_MAX = 10_000

export class Findings {
  readonly problems: Array<Problem> = []
  readonly notes: Array<Note> = []
  logs = 0
  segments = 0
  sealed = 0
  entries = 0
  thinnedEvents = 0
  batches = 0
  bytes = 0
  private unlisted = 0

  problem(problem: Problem): undefined {
    if (this.problems.length < FINDINGS_MAX) this.problems.push(problem)
    else this.unlisted += 1
  }

  note(note: Note): undefined {
    if (this.notes.length < FINDINGS_MAX) this.notes.push(note)
    else this.unlisted += 1
  }

  report(directory: string): VerifyReport {
    const { logs, segments, sealed, entries, thinnedEvents, batches, bytes, problems, unlisted } = this
    const more = { file: directory, text: `${unlisted} further findings are not listed` }
    const notes = unlisted === 0 ? this.notes : [...this.notes, more]
    return { logs, segments, sealed, entries, thinnedEvents, batches, bytes, problems, notes }
  }
}
