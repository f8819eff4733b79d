// Pages before the head, for readers that catch up. Readers at the same place share the reading and the bytes. A page
// says who still needs it; when nobody does, its buffer is used for another.
import type { RawPage } from "../../conversation/Reading.ts"
import { limits } from "../../wire/WireLimits.ts"
import type { PageBuffers } from "./PageBuffers.ts"
import type { WrapInPlace } from "./WirePage.ts"

/** A page as it goes over the wire. */
export interface Content {
  readonly pieces: ReadonlyArray<Buffer>
  readonly next: number
  readonly head: number
}

export interface CatchUpPagesOptions {
  /** Reads a page the ordinary way and frames it. */
  readonly read: (after: number, bytesMax: number) => Promise<Content>
  /** Reads a page as it lies in the log; absent where runes have to be looked at one by one. */
  readonly readRaw: ((after: number, into: Buffer) => Promise<RawPage | undefined>) | undefined
  /** Frames a page in the buffer in which it lies. */
  readonly wrap: WrapInPlace
  readonly buffers: PageBuffers
}

/** A page that is used by as many as hold it; whoever got it gives it back with `release`. */
export class SharedPage {
  readonly content: Promise<Content>
  private readonly onUnused: () => void
  private users = 1

  constructor(content: Promise<Content>, onUnused: () => void) {
    this.content = content
    this.onUnused = onUnused
    // A reading that nobody waits for any more is nobody's failure.
    content.catch(() => undefined)
  }

  retain(): void {
    this.users += 1
  }

  readonly release = (): void => {
    this.users -= 1
    if (this.users === 0) this.content.then(this.onUnused, this.onUnused)
  }
}

export class CatchUpPages {
  private readonly options: CatchUpPagesOptions
  /** By the cursor in front of them, the oldest first. */
  private readonly kept = new Map<number, SharedPage>()

  constructor(options: CatchUpPagesOptions) {
    this.options = options
  }

  /** The page behind a cursor; it is kept for a while where others may want it too. */
  take(after: number, { isShared }: { readonly isShared: boolean }): SharedPage {
    const known = this.kept.get(after)
    if (known !== undefined) {
      known.retain()
      return known
    }
    const page = this.start(after)
    if (!isShared) return page
    this.keep(after, page)
    // Only a page with more behind it stays what it is.
    page.content.then(
      ({ head, next }) => (next < head ? undefined : this.drop(after, page)),
      () => this.drop(after, page)
    )
    return page
  }

  /** Nobody catches up any more. */
  clear(): void {
    for (const [after, page] of this.kept) this.drop(after, page)
  }

  private start(after: number): SharedPage {
    const { buffers, read, readRaw } = this.options
    const buffer = readRaw === undefined ? undefined : buffers.take()
    if (readRaw === undefined || buffer === undefined) {
      return new SharedPage(read(after, limits.pageBytes), () => undefined)
    }
    const content = readRaw(after, buffer).then((raw) =>
      raw === undefined
        ? read(after, limits.pageBytes)
        : { pieces: this.options.wrap(raw), next: raw.next, head: raw.head }
    )
    return new SharedPage(content, () => buffers.giveBack(buffer))
  }

  private keep(after: number, page: SharedPage): void {
    page.retain()
    this.kept.set(after, page)
    if (this.kept.size <= limits.pagesKeptPerTopic) return
    const [oldest] = this.kept
    if (oldest !== undefined) this.drop(...oldest)
  }

  private drop(after: number, page: SharedPage): void {
    if (this.kept.get(after) !== page) return
    this.kept.delete(after)
    page.release()
  }
}
