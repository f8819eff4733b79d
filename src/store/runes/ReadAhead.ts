// Reads a log page by page, the next page while one is worked on.
import type { RunePage } from "./Page.ts"

export type ReadPage = (after: number) => Promise<RunePage>

export interface PageSource {
  readonly read: ReadPage
  /** The newest durable event. */
  readonly head: () => Promise<number>
}

/** All pages behind `from` up to the head as it is when the reader gets there. */
export async function* readAhead({ head, read }: PageSource, from: number): AsyncGenerator<RunePage> {
  let after = from
  let coming = read(after)
  let isAhead = false
  for (;;) {
    const page = await coming
    if (page.next === after) return
    after = page.next
    const isEnd = after >= page.head
    if (!isEnd) coming = begun(read, after)
    yield page
    // A page that was read ahead does not know what came since.
    if (isEnd && !(isAhead && (await isMore(head, after)))) return
    if (isEnd) coming = read(after)
    isAhead = !isEnd
  }
}

/** Whether there is something behind `after`. Of a log that is gone by now, all there was has been read. */
const isMore = async (head: PageSource["head"], after: number): Promise<boolean> => {
  const newest = await head().catch(() => after)
  return newest > after
}

/** A read whose failure is told to who asks for the page, and to nobody if the reader stops before. */
const begun = (read: ReadPage, after: number): Promise<RunePage> => {
  const page = read(after)
  page.catch(() => undefined)
  return page
}
