// Runes in and out of the log. An append that resolves is durable; runes already carry their event ids, because the
// actor of the conversation owns the sequence. Reading never goes through the actor: a reader has a cursor. Each
// operation exists as a promise (`…Now`, for the actor's pipeline and for loops) and as an effect with typed errors.
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { crc32c } from "#runelog/Crc32c.ts"
import { bodyBytes, type Entry, writtenOut } from "#runelog/commit/Entry.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import {
  type AppendError as EngineAppendError,
  type ReadError as EngineReadError,
  type JournalCorrupt,
  type LogDamaged,
  LogUnknown,
  type WriterPoisoned
} from "#runelog/RunelogErrors.ts"
import type { Page, RawPage, RawRequest } from "#runelog/segment/Reader.ts"
import type { NoticeBus } from "../../contract/DurableNotices.ts"
import { privacyRank, type Visibility } from "../../rune/Envelope.ts"
import type { Family } from "../../rune/KindDefinition.ts"
import type { AnyRune } from "../../rune/Rune.ts"
import { attempt, tagsOf } from "../Boundary.ts"
import {
  type AppendsWaiting,
  type ArchiveDamaged,
  type ArchiveUnsupported,
  ConversationUnknown,
  RuneInvalid,
  type RuneUnreadable
} from "../StoreErrors.ts"
import { limits } from "../StoreLimits.ts"
import { AppendQueue } from "./AppendQueue.ts"
import { encodeRunes } from "./Encode.ts"
import { familySet } from "./Families.ts"
import { Follower } from "./Follower.ts"
import { isTerminal } from "./FrameHeader.ts"
import { decodePage, type RunePage } from "./Page.ts"
import { PlainPages } from "./PlainPages.ts"
import { readAhead } from "./ReadAhead.ts"

export interface AppendOptions {
  /** May use the room kept for last words when the disk is full. By default so for a small batch that ends in a terminal rune. */
  readonly terminal?: boolean
}

export interface ReadOptions {
  /** The last event the reader has; 0 for the beginning. */
  readonly after: number
  readonly bytesMax?: number
  /** Runes that are more private are left out. */
  readonly visibilityMax?: Visibility
  readonly families?: ReadonlyArray<Family>
}

export type AppendError = EngineAppendError | AppendsWaiting | RuneInvalid
export type ReadError =
  | Exclude<EngineReadError, LogUnknown>
  | ConversationUnknown
  | RuneUnreadable
  | ArchiveDamaged
  | ArchiveUnsupported

const appendTags = tagsOf<AppendError>({
  LogNameInvalid: true,
  LogUnknown: true,
  LogDamaged: true,
  EntryTooLarge: true,
  EntryInvalid: true,
  BatchTooLarge: true,
  BatchEmpty: true,
  Busy: true,
  EventIdOutOfOrder: true,
  DiskFull: true,
  DiskFailed: true,
  ResourcesScarce: true,
  WriterPoisoned: true,
  WriterClosed: true,
  JournalCorrupt: true,
  AppendsWaiting: true,
  RuneInvalid: true
})

const readTags = tagsOf<ReadError>({
  LogNameInvalid: true,
  SegmentCorrupt: true,
  FormatUnsupported: true,
  ForeignFile: true,
  CursorBeyondEnd: true,
  ReadInvalid: true,
  DiskFailed: true,
  ResourcesScarce: true,
  WriterClosed: true,
  ConversationUnknown: true,
  RuneUnreadable: true,
  ArchiveDamaged: true,
  ArchiveUnsupported: true
})

const attemptAppend = attempt<AppendError>(appendTags)
export const attemptRead = attempt<ReadError>(readTags)

export interface EngineRead {
  readonly after: number
  readonly bytesMax: number
  readonly filter?: { readonly visibilityMax?: number; readonly families?: ReadonlySet<number> }
}

/** Where conversations are that have left the log. */
export interface ArchiveSource {
  /** A page of an archived conversation; nothing when there is no archive of it. */
  readonly readPage: (conversationId: string, request: EngineRead) => Promise<Page | undefined>
  readonly head: (conversationId: string) => Promise<number | undefined>
}

export interface RuneStoreOptions {
  readonly runelog: Runelog
  readonly archive?: ArchiveSource
  /** Where runes are announced when they are durable. */
  readonly notices?: Pick<NoticeBus, "appended">
}

const requestOf = (options: ReadOptions): EngineRead => {
  const { after, bytesMax = limits.pageBytes, families, visibilityMax } = options
  if (visibilityMax === undefined && families === undefined) return { after, bytesMax }
  const filter = {
    ...(visibilityMax === undefined ? {} : { visibilityMax: privacyRank[visibilityMax] }),
    ...(families === undefined ? {} : { families: familySet(families) })
  }
  return { after, bytesMax, filter }
}

// One of each for all appends: nobody changes them.
const ordinary = { terminal: false } as const
const lastWord = { terminal: true } as const

/** A small batch that ends a turn may use the room kept for that. */
const isLastWord = (runes: ReadonlyArray<AnyRune>, entries: ReadonlyArray<Entry>): boolean => {
  const last = runes[runes.length - 1]
  if (last === undefined || !isTerminal(last)) return false
  return entries.reduce((sum, { body }) => sum + bodyBytes(body), 0) <= limits.terminalBytesMax
}

const isPlain = ({ bytesMax = limits.pageBytes, families, visibilityMax }: ReadOptions): boolean =>
  bytesMax === limits.pageBytes && families === undefined && visibilityMax === undefined

export class RuneStore {
  private readonly runelog: Runelog
  private readonly archive: ArchiveSource | undefined
  private readonly notices: RuneStoreOptions["notices"]
  private readonly queue: AppendQueue
  private readonly plainPages = new PlainPages((conversationId, request) => this.readRawNow(conversationId, request))
  /** The last append of a conversation whose answer may come later than that of the next one. */
  private readonly detours = new Map<string, Promise<void>>()

  constructor(options: RuneStoreOptions) {
    this.runelog = options.runelog
    this.archive = options.archive
    this.notices = options.notices
    this.queue = new AppendQueue({
      open: (conversationId) => options.runelog.head(conversationId),
      isBusy: () => options.runelog.busy,
      ready: () => options.runelog.ready()
    })
  }

  /**
   * Resolves once the runes are durable. The work up to the journal starts before this returns, so appends made one
   * after the other keep their order without waiting for each other. Where the engine is busy, the append waits.
   */
  appendNow(conversationId: string, runes: ReadonlyArray<AnyRune>, options?: AppendOptions): Promise<void> {
    const entries = encodeRunes(conversationId, runes)
    if (entries instanceof RuneInvalid) return Promise.reject(entries)
    const start = (options?.terminal ?? isLastWord(runes, entries)) ? lastWord : ordinary
    const first = runes[0]?.event_id ?? 0
    // Most appends start at once, and are not worth the wrapping of one that may have to wait.
    const isFree = this.queue.isFree(conversationId, start)
    const taken = isFree
      ? this.runelog.append(conversationId, first, entries, start)
      : this.appendLater(conversationId, { entries, first }, start)
    const isDirect = isFree && !start.terminal && this.detours.size === 0
    const durable = isDirect ? taken : this.inOrder(conversationId, taken, { isDetour: start.terminal || !isFree })
    return this.notices === undefined ? durable : this.telling(durable, conversationId, runes)
  }

  /**
   * What waits are copies that hold no rune. Entries that wait live long, and from the first ones that do the JavaScript
   * engine would conclude that all will, and make each in its old space, where the text of a rune that is long written
   * stays until the next full collection: it took a seventh of the rate.
   */
  private appendLater(
    conversationId: string,
    { entries, first }: { readonly entries: ReadonlyArray<Entry>; readonly first: number },
    options: { readonly terminal: boolean }
  ): Promise<void> {
    const waiting = entries.map((entry) => ({ ...entry, body: writtenOut(entry.body) }))
    const start = (): Promise<void> => this.runelog.append(conversationId, first, waiting, options)
    return this.queue.run(conversationId, { start, terminal: options.terminal })
  }

  private telling(durable: Promise<void>, conversationId: string, runes: ReadonlyArray<AnyRune>): Promise<void> {
    return durable.then(() => this.notices?.appended(conversationId, runes))
  }

  /**
   * Appends of one batch become durable at once, but the answer to some takes a detour: last words may be tried again,
   * others waited for their turn. Nobody is told of a rune before the ones in front of it.
   */
  private inOrder(
    conversationId: string,
    taken: Promise<void>,
    { isDetour }: { readonly isDetour: boolean }
  ): Promise<void> {
    const before = this.detours.get(conversationId)
    if (before === undefined && !isDetour) return taken
    if (before !== undefined) taken.catch(() => undefined)
    const durable = before === undefined ? taken : before.then(() => taken)
    if (!isDetour) return durable
    this.detours.set(conversationId, durable)
    const forget = (): void => {
      if (this.detours.get(conversationId) === durable) this.detours.delete(conversationId)
    }
    durable.then(forget, forget)
    return durable
  }

  /** As `appendNow`. It cannot be interrupted: whoever asked knows afterwards whether the runes are in the log. */
  append(
    conversationId: string,
    runes: ReadonlyArray<AnyRune>,
    options?: AppendOptions
  ): Effect.Effect<void, AppendError> {
    return Effect.uninterruptible(attemptAppend(() => this.appendNow(conversationId, runes, options)))
  }

  async readNow(conversationId: string, options: ReadOptions): Promise<RunePage> {
    const page = isPlain(options) ? await this.plainPages.read(conversationId, options.after) : undefined
    return page ?? decodePage(conversationId, await this.readBytesNow(conversationId, options))
  }

  read(conversationId: string, options: ReadOptions): Effect.Effect<RunePage, ReadError> {
    return attemptRead(() => this.readNow(conversationId, options))
  }

  /** A page as it lies in the log: bodies are the JSON of the runes, ready for the wire. */
  async readBytesNow(conversationId: string, options: ReadOptions): Promise<Page> {
    const request = requestOf(options)
    // Between the two looks a conversation may have come back from the archive.
    const page =
      (await this.readLog(conversationId, request)) ??
      (await this.archive?.readPage(conversationId, request)) ??
      (await this.readLog(conversationId, request))
    if (page === undefined) throw new ConversationUnknown({ conversationId })
    return page
  }

  /** Why nothing more can be appended to a conversation before a restart or a repair; nothing when it can. */
  refusalNow(conversationId: string): Promise<LogDamaged | JournalCorrupt | WriterPoisoned | undefined> {
    return this.runelog.refusal(conversationId)
  }

  /** Frames as they lie in the log, in the caller's buffer; nothing when they have to be read as a page. */
  async readRawNow(conversationId: string, request: RawRequest): Promise<RawPage | undefined> {
    try {
      return await this.runelog.readRaw(conversationId, request)
    } catch (error) {
      // It may be in the archive, where pages are found.
      if (error instanceof LogUnknown) return undefined
      throw error
    }
  }

  private async readLog(conversationId: string, request: EngineRead): Promise<Page | undefined> {
    try {
      return await this.runelog.read(conversationId, request)
    } catch (error) {
      if (error instanceof LogUnknown) return undefined
      throw error
    }
  }

  readBytes(conversationId: string, options: ReadOptions): Effect.Effect<Page, ReadError> {
    return attemptRead(() => this.readBytesNow(conversationId, options))
  }

  /** The newest durable event, of an archived conversation too; 0 when there is no such conversation. */
  async headNow(conversationId: string): Promise<number> {
    const live = await this.runelog.head(conversationId)
    if (live > 0) return live
    return (await this.archive?.head(conversationId)) ?? this.runelog.head(conversationId)
  }

  head(conversationId: string): Effect.Effect<number, ReadError> {
    return attemptRead(() => this.headNow(conversationId))
  }

  /** The checksum of an event as it was appended; nothing when the log does not hold it, or no longer. */
  async eventSumNow(conversationId: string, eventId: number): Promise<number | undefined> {
    if (eventId < 1 || (await this.headNow(conversationId)) < eventId) return undefined
    const { frames } = await this.readBytesNow(conversationId, { after: eventId - 1, bytesMax: 1 })
    const frame = frames[0]
    // The checksum of its frame changes with the frames before it, when some of those are dropped; that of its body not.
    return frame?.kind === "entry" && frame.eventId === eventId
      ? crc32c(frame.body, 0, frame.body.length, 0)
      : undefined
  }

  /** A reader that waits for what is not there yet; close it when done. */
  follower(conversationId: string, options: ReadOptions): Follower {
    return new Follower({
      after: options.after,
      read: (after) => this.readBytesNow(conversationId, { ...options, after }),
      watch: (listener) => this.runelog.watch(conversationId, listener)
    })
  }

  /** Every page from the cursor on, then each new one as it becomes durable, until the reader stops. */
  followBytes(conversationId: string, options: ReadOptions): Stream.Stream<Page, ReadError> {
    return followStream(() => this.follower(conversationId, options))
  }

  follow(conversationId: string, options: ReadOptions): Stream.Stream<RunePage, ReadError> {
    return Stream.mapEffect(this.followBytes(conversationId, options), (page) =>
      attemptRead(async () => decodePage(conversationId, page))
    )
  }

  /** All pages up to the head as it is when the reader gets there; the next one is read while a page is worked on. */
  pagesNow(conversationId: string, options: ReadOptions): AsyncGenerator<RunePage> {
    const read = (after: number): Promise<RunePage> => this.readNow(conversationId, { ...options, after })
    return readAhead({ read, head: () => this.headNow(conversationId) }, options.after)
  }
}

const followStream = (open: () => Follower): Stream.Stream<Page, ReadError> =>
  Stream.unwrap(
    Effect.map(
      Effect.acquireRelease(Effect.sync(open), (follower) => Effect.sync(() => follower.close())),
      (follower) =>
        Stream.unfold(undefined, () =>
          Effect.map(
            attemptRead(() => follower.next()),
            (page) => (page === undefined ? undefined : ([page, undefined] as const))
          )
        )
    )
  )
