// The list of conversations, page by page as it is scrolled to. What happens on the server brings the first page anew;
// a filter begins a new list, and answers to an old one are dropped.
import { signal } from "@preact/signals"
import type { ConversationItem } from "../../client/Client.ts"
import { client, failureText } from "./Connection.ts"

export interface ListFilter {
  readonly q: string
  readonly state: string
  readonly label: string
}

export const filter = signal<ListFilter>({ q: "", state: "", label: "" })
export const conversations = signal<ReadonlyArray<ConversationItem>>([])
export const isListLoaded = signal(false)
export const listFailure = signal("")
export const selection = signal<ReadonlySet<string>>(new Set())
export const bulkOutcome = signal("")

const pageItems = 100
const refreshEveryMs = 700
let cursor: string | undefined
let generation = 0
let isLoading = false

const fieldsOf = ({ label, q, state }: ListFilter) => ({
  ...(q === "" ? {} : { q }),
  ...(state === "" ? {} : { state }),
  ...(label === "" ? {} : { label })
})

const load = async (from: string | undefined): Promise<void> => {
  const mine = generation
  isLoading = true
  try {
    const page = await client().call("conversation.list", {
      ...fieldsOf(filter.value),
      limit: pageItems,
      ...(from === undefined ? {} : { cursor: from })
    })
    if (mine !== generation) return
    const known = new Set(page.items.map(({ conversation_id: id }) => id))
    const rest = conversations.value.filter(({ conversation_id: id }) => !known.has(id))
    // A first page that comes again is put before what was loaded behind it.
    conversations.value = from === undefined ? [...page.items, ...rest] : [...rest, ...page.items]
    if (from !== undefined || conversations.value.length <= pageItems) cursor = page.next_cursor
    listFailure.value = ""
  } catch (error) {
    listFailure.value = failureText(error)
  } finally {
    isLoading = false
    isListLoaded.value = true
  }
}

export const setFilter = (change: Partial<ListFilter>): void => {
  filter.value = { ...filter.value, ...change }
  generation += 1
  cursor = undefined
  conversations.value = []
  isListLoaded.value = false
  selection.value = new Set()
  void load(undefined)
}

export const loadMore = (): void => {
  if (!isLoading && cursor !== undefined) void load(cursor)
}

/** Keeps the list fresh until it is told to stop. */
export const followList = (): (() => void) => {
  const stop = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const refresh = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined
      void load(undefined)
    }, refreshEveryMs)
  }
  generation += 1
  conversations.value = []
  cursor = undefined
  void load(undefined)
  const follow = async (): Promise<void> => {
    const kinds = [
      "session.*",
      "plan.*",
      "turn.started",
      "turn.completed",
      "turn.error",
      "turn.interrupted",
      "tool.approval_requested",
      "tool.result"
    ]
    for await (const item of client().tail("*", { after: "tail", kinds, signal: stop.signal }))
      if ("rune" in item) refresh()
  }
  follow().catch(failureText)
  return () => {
    stop.abort()
    clearTimeout(timer)
  }
}

export const toggleSelected = (id: string): void => {
  const next = new Set(selection.value)
  if (!next.delete(id)) next.add(id)
  selection.value = next
}

/** One operation for everything that is selected, a few at a time; says how many did not take it, and why. */
export const runOnSelected = async (verb: "conversation.close" | "conversation.archive"): Promise<void> => {
  const ids = [...selection.value]
  const failures: Array<string> = []
  const lanes = 8
  let at = 0
  const lane = async (): Promise<void> => {
    for (let id = ids[at++]; id !== undefined; id = ids[at++])
      await client()
        .call(verb, { conversation_id: id })
        .catch((error: unknown) => failures.push(failureText(error)))
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  const done = ids.length - failures.length
  const word = verb === "conversation.close" ? "closed" : "archived"
  bulkOutcome.value = `${done} ${word}${failures.length === 0 ? "" : `, ${failures.length} not: ${failures[0]}`}`
  selection.value = new Set()
  void load(undefined)
}
