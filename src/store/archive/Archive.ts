// Conversations that left the log. Archiving seals, compresses, verifies by reading back, gives the file its name and
// only then removes the log; restoring goes the other way round. Whenever the power goes, the log or the archive is
// whole, and `settle` finishes what was begun. `<data>/archive/<conversation>.arc` is the only file of an archive.

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Disk } from "#runelog/disk/Disk.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import { asDiskError } from "#runelog/RunelogErrors.ts"
import { ImportRefused, LogWentOn, type SealedFile } from "#runelog/recovery/Import.ts"
import type { Page } from "#runelog/segment/Reader.ts"
import { dropOldest } from "../../rune/Elements.ts"
import type { AnyRune } from "../../rune/Rune.ts"
import { foldRow } from "../catalog/CatalogFold.ts"
import { emptyRow, type RowState } from "../catalog/CatalogRow.ts"
import { ensureDirectory, freshFile, isMissing, removeIfThere } from "../Files.ts"
import { LogEngine } from "../LogEngine.ts"
import { decodePage, type RunePage } from "../runes/Page.ts"
import type { ArchiveSource, EngineRead } from "../runes/RuneStore.ts"
import { removeSnapshots } from "../Snapshots.ts"
import { ArchiveDamaged, ConversationUnknown, NotArchivable } from "../StoreErrors.ts"
import { limits } from "../StoreLimits.ts"
import { ArchiveWriter, type Manifest, rowIn } from "./ArchiveFile.ts"
import { ArchiveReader } from "./ArchiveReader.ts"

export interface ArchiveOptions {
  readonly runelog: Runelog
  readonly disk: Disk
  /** The data directory. */
  readonly directory: string
  /** Told when a conversation has left the log: what was derived from it can go. */
  readonly onArchived?: (conversationId: string) => Promise<void>
}

/** What `session.archived` says: where the conversation goes, and the digest of everything before that rune. */
export interface Prepared {
  readonly location: string
  readonly hash: string
}

export interface Archived {
  readonly location: string
  readonly head: number
  readonly bytes: number
}

/** What became of a conversation that a crash left both in the log and archived, or about to be. */
export type Settled =
  | { readonly _tag: "Archived" }
  | { readonly _tag: "Restored" }
  /** Nothing was done; somebody has to look. */
  | { readonly _tag: "Kept"; readonly reason: unknown }

const SUFFIX = ".arc"
const isConversation = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(name)

export class Archive implements ArchiveSource {
  private readonly options: ArchiveOptions
  private readonly readers = new Map<string, Promise<ArchiveReader | undefined>>()
  /** Conversations brought back by this process that have not gone on yet: not to be archived by `settle`. */
  private readonly broughtBack = new Set<string>()
  /** Conversations between log and archive. */
  private readonly moving = new Map<string, Promise<unknown>>()

  constructor(options: ArchiveOptions) {
    this.options = options
  }

  location(conversationId: string): string {
    return `archive/${conversationId}${SUFFIX}`
  }

  /** Seals the log. The rune `session.archived` with the answer is what `commit` waits for. */
  async prepare(conversationId: string): Promise<Prepared> {
    return { location: this.location(conversationId), hash: await this.options.runelog.seal(conversationId) }
  }

  /** Moves a conversation whose last rune is `session.archived` out of the log. Safe to repeat. */
  commit(conversationId: string): Promise<Archived> {
    return this.alone(conversationId, async () => {
      const archived = await this.move(conversationId)
      this.broughtBack.delete(conversationId)
      return archived
    })
  }

  /** Brings a conversation back into the log. The archive stays until `forget`. Safe to repeat. */
  restore(conversationId: string): Promise<{ readonly head: number }> {
    return this.alone(conversationId, () => this.bringBack(conversationId))
  }

  /** Removes the archive of a conversation that is in the log again and has gone on there. */
  forget(conversationId: string): Promise<void> {
    return this.alone(conversationId, async () => {
      this.broughtBack.delete(conversationId)
      const reader = await this.reader(conversationId)
      if (reader === undefined) return
      const head = await this.options.runelog.head(conversationId)
      if (head > reader.manifest.head) await this.drop(conversationId)
    })
  }

  /** Finishes what a crash interrupted. Candidates are conversations that the catalog knows as archived. */
  async settle(candidates: Iterable<string>): Promise<ReadonlyMap<string, Settled>> {
    await this.sweep()
    await this.adopt()
    const outcomes = new Map<string, Settled>()
    for (const conversationId of new Set([...candidates, ...(await this.list())])) {
      // One that cannot be settled must not keep the others from it.
      const outcome = await this.settleOne(conversationId).catch((reason) => ({ _tag: "Kept", reason }) as const)
      if (outcome !== undefined) outcomes.set(conversationId, outcome)
    }
    return outcomes
  }

  /** Archives from before it was recorded which must be there. One that cannot be read is not vouched for. */
  private async adopt(): Promise<void> {
    const { runelog } = this.options
    const items = new Map<string, string>()
    for (const conversationId of await this.list()) {
      if (runelog.items.has(this.location(conversationId))) continue
      const reader = await this.reader(conversationId).catch(() => undefined)
      if (reader !== undefined) items.set(this.location(conversationId), reader.manifest.sha256)
    }
    if (items.size > 0) await runelog.recordItems(items)
  }

  private async settleOne(conversationId: string): Promise<Settled | undefined> {
    const head = await this.options.runelog.head(conversationId)
    if (head === 0 || this.broughtBack.has(conversationId)) return undefined
    if ((await this.lastRune(conversationId, head))?.kind === "session.archived") {
      await this.commit(conversationId)
      return { _tag: "Archived" }
    }
    const reader = await this.reader(conversationId)
    if (reader === undefined) return undefined
    if (head <= reader.manifest.head) return { _tag: "Kept", reason: "the log is shorter than its archive" }
    await this.forget(conversationId)
    return { _tag: "Restored" }
  }

  /** Every conversation that has an archive. */
  async list(): Promise<ReadonlyArray<string>> {
    const entries = await this.entries()
    return entries.flatMap((name) => (name.endsWith(SUFFIX) ? [name.slice(0, -SUFFIX.length)] : []))
  }

  async has(conversationId: string): Promise<boolean> {
    return isConversation(conversationId) && this.options.disk.exists(this.path(conversationId))
  }

  /** The catalog's row as it was archived; nothing when it has to be folded from the runes. */
  async row(conversationId: string): Promise<RowState | undefined> {
    const reader = await this.reader(conversationId)
    return reader === undefined ? undefined : rowIn(reader.manifest)
  }

  /** Checks every byte of an archive; rejects with what is wrong. */
  async verify(conversationId: string): Promise<Manifest> {
    const reader = await this.reader(conversationId)
    if (reader === undefined) throw new ConversationUnknown({ conversationId })
    await reader.verify()
    return reader.manifest
  }

  async readPage(conversationId: string, request: EngineRead): Promise<Page | undefined> {
    return (await this.reader(conversationId))?.readPage(request)
  }

  async head(conversationId: string): Promise<number | undefined> {
    return (await this.reader(conversationId))?.manifest.head
  }

  private async move(conversationId: string): Promise<Archived> {
    const { onArchived, runelog } = this.options
    const head = await runelog.head(conversationId)
    if (head === 0) return this.moved(conversationId)
    const last = await this.lastRune(conversationId, head)
    if (last?.kind !== "session.archived") {
      throw new NotArchivable({ conversationId, reason: `its last rune is ${last?.kind ?? "missing"}` })
    }
    const files = await runelog.sealedFiles(conversationId)
    const wentOn = new NotArchivable({ conversationId, reason: "something was appended meanwhile" })
    const newest = files.at(-1)
    if (newest?.lastEventId !== head) throw wentOn
    await this.write(conversationId, files, newest)
    // From here on it has to be there, also when somebody takes both away.
    await runelog.recordItems(new Map([[this.location(conversationId), newest.sha256]]))
    await runelog.remove(conversationId, { head }).catch(async (error) => {
      if (!(error instanceof LogWentOn)) throw error
      await this.drop(conversationId)
      throw wentOn
    })
    await onArchived?.(conversationId)
    return this.moved(conversationId)
  }

  private async moved(conversationId: string): Promise<Archived> {
    const reader = await this.reader(conversationId)
    if (reader === undefined) throw new ConversationUnknown({ conversationId })
    const { head, segments } = reader.manifest
    const blocks = segments.flatMap((segment) => segment.blocks)
    const bytes = blocks.reduce((sum, { stored }) => sum + stored, 0)
    return { location: this.location(conversationId), head, bytes }
  }

  /** The archive is durable under its name, and was read back whole, when this resolves. */
  private async write(
    conversationId: string,
    files: ReadonlyArray<SealedFile>,
    { lastEventId: head, sha256 }: SealedFile
  ): Promise<void> {
    const { disk } = this.options
    await ensureDirectory(disk, this.directory)
    const fresh = await freshFile(disk, `${this.path(conversationId)}.tmp`)
    try {
      const row = await this.fold(conversationId)
      const writer = new ArchiveWriter(fresh.file)
      await writer.begin()
      const segments = []
      for (const file of files) segments.push(await writer.segment(file))
      await writer.finish({ conversation_id: conversationId, head, sha256, segments, row })
      await fresh.file.sync()
      await (await ArchiveReader.open(disk, fresh.path, conversationId)).verify()
      this.readers.delete(conversationId)
      await fresh.keep(this.path(conversationId))
    } catch (error) {
      await fresh.drop()
      throw asDiskError(error, fresh.path)
    }
  }

  private async fold(conversationId: string): Promise<RowState> {
    const row = emptyRow(conversationId)
    for (let after = 0; ; ) {
      const page = await this.livePage(conversationId, after)
      for (const rune of page.runes) foldRow(row, rune)
      if (page.next === after) return row
      after = page.next
    }
  }

  private async livePage(conversationId: string, after: number): Promise<RunePage> {
    return decodePage(conversationId, await this.options.runelog.read(conversationId, { after }))
  }

  private async lastRune(conversationId: string, head: number): Promise<AnyRune | undefined> {
    return (await this.livePage(conversationId, head - 1)).runes.at(-1)
  }

  private async bringBack(conversationId: string): Promise<{ readonly head: number }> {
    const { runelog } = this.options
    const live = await runelog.head(conversationId)
    this.broughtBack.add(conversationId)
    if (live > 0) return { head: live }
    const reader = await this.reader(conversationId)
    if (reader === undefined) throw new ConversationUnknown({ conversationId })
    try {
      const { head } = await runelog.importSegments(conversationId, reader.segments())
      return { head }
    } catch (error) {
      if (!(error instanceof ImportRefused)) throw error
      throw new ArchiveDamaged({ conversationId, file: this.path(conversationId), reason: error.message })
    }
  }

  private async drop(conversationId: string): Promise<void> {
    const { disk } = this.options
    this.readers.delete(conversationId)
    await this.options.runelog.recordItems(new Map([[this.location(conversationId), undefined]]))
    await removeIfThere(disk, this.path(conversationId))
    await disk.syncDirectory(this.directory)
  }

  /** Removes what unfinished archiving left behind; a file that is being written now is not left behind. */
  private async sweep(): Promise<void> {
    for (const name of await this.entries()) {
      if (!name.endsWith(".tmp")) continue
      const remove = (): Promise<void> => removeIfThere(this.options.disk, `${this.directory}/${name}`)
      await this.alone(name.slice(0, -`${SUFFIX}.tmp`.length), remove)
    }
  }

  private async entries(): Promise<ReadonlyArray<string>> {
    try {
      return (await this.options.disk.list(this.directory)).map(({ name }) => name)
    } catch (error) {
      if (isMissing(error)) return []
      throw error
    }
  }

  /** Moves of one conversation wait for each other; nobody else does. */
  private alone<A>(conversationId: string, body: () => Promise<A>): Promise<A> {
    const before = this.moving.get(conversationId) ?? Promise.resolve()
    const running = before.then(body, body).finally(() => {
      if (this.moving.get(conversationId) === running) this.moving.delete(conversationId)
    })
    this.moving.set(conversationId, running)
    return running
  }

  private reader(conversationId: string): Promise<ArchiveReader | undefined> {
    const known = this.readers.get(conversationId)
    if (known !== undefined) return known
    const opening = this.openReader(conversationId)
    this.readers.set(conversationId, opening)
    if (this.readers.size > limits.archiveReadersMax) dropOldest(this.readers)
    const forget = (): void => {
      if (this.readers.get(conversationId) === opening) this.readers.delete(conversationId)
    }
    // What is not there now may be there later.
    opening.then((reader) => (reader === undefined ? forget() : undefined), forget)
    return opening
  }

  private async openReader(conversationId: string): Promise<ArchiveReader | undefined> {
    if (!isConversation(conversationId)) return undefined
    try {
      return await ArchiveReader.open(this.options.disk, this.path(conversationId), conversationId)
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  private get directory(): string {
    return `${this.options.directory}/archive`
  }

  private path(conversationId: string): string {
    return `${this.directory}/${conversationId}${SUFFIX}`
  }
}

/** Archived conversations; what is derived from one that has left the log goes with it. */
export class ArchiveService extends Context.Service<ArchiveService, Archive>()("echs/store/Archive") {
  static readonly layer: Layer.Layer<ArchiveService, never, LogEngine> = Layer.effect(
    ArchiveService,
    Effect.map(
      LogEngine,
      ({ directory, disk, runelog }) =>
        new Archive({ runelog, disk, directory, onArchived: (id) => removeSnapshots(disk, directory, id) })
    )
  )
}
