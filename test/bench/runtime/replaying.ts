// Replay: pages of logs are read, checked, decoded and folded into state, beside JSON.parse of the very same bytes and
// nothing else. The logs hold what agents write: turns with streamed text, tools with output, and their ends.
import { join } from "node:path"
import { evolve } from "#src/machine/evolve/Evolve.ts"
import { emptyConversation } from "#src/machine/State.ts"
import { seededIdSource } from "#src/rune/IdSource.ts"
import { type ConversationId, makeConversationId } from "#src/rune/Ids.ts"
import type { Kind } from "#src/rune/Kinds.ts"
import type { Rune, RuneOf } from "#src/rune/Rune.ts"
import type { RunePage } from "#src/store/runes/Page.ts"
import { type OpenStore, openStore } from "../../support/store/openStore.ts"
import { callItem, Story, shellTool, textItem } from "../../support/story.ts"
import type { Row } from "../Bench.ts"
import { comparedRow, found, rateRow } from "../runelog/rows.ts"
import { nothing, type Results, repeat, type Subject } from "../runelog/sampling.ts"

const RUNES_PER_CONVERSATION = 5_000
const BATCH_RUNES = 500
const sentence = "The second test fails because the cursor is moved before the frame was checked. "
const output = "ok 1 - parser keeps its place\nok 2 - printer wraps lines\n".repeat(12)

const newest = <K extends Kind>(story: Story, kind: K): RuneOf<K> => {
  const found = story.runes.findLast((rune) => rune.kind === kind)
  if (found === undefined) throw new Error(`there is no ${kind}`)
  return found as RuneOf<K>
}

/** Streams a text in pieces of about what 50 ms of a model bring. */
const stream = (story: Story, text: string): void => {
  const { request_id } = newest(story, "turn.model_requested").payload
  for (let at = 0; at < text.length; at += 24) {
    const content = text.slice(at, at + 24)
    story.run({ _tag: "AppendText", agent_id: story.root, content, request_id })
  }
}

/** One turn: a question, streamed text, a command with its output, and a longer answer. */
const tellTurn = (story: Story): void => {
  story.post("Run the tests and say what is wrong with the second one.")
  story.request()
  stream(story, sentence)
  story.respond([textItem(sentence), callItem("shell", shellTool, '{"command":["npm","test"]}')])
  const { call_id: callId } = newest(story, "tool.call").payload
  story.start(callId)
  story.run({ _tag: "AppendProgress", call_id: callId, stream: "stdout", chunk: output.slice(0, 300) })
  story.finish(callId, output)
  story.settle()
  story.request()
  stream(story, sentence.repeat(8))
  story.respond([textItem(sentence.repeat(8))])
}

const tellStory = (runes: number): ReadonlyArray<Rune> => {
  const story = new Story().ready()
  while (story.runes.length < runes) tellTurn(story)
  return story.runes.slice(0, runes)
}

export interface ReplayLogs {
  readonly store: OpenStore
  readonly conversationIds: ReadonlyArray<ConversationId>
  readonly runesEach: number
}

export const writeReplayLogs = async (directory: string, runes: number): Promise<ReplayLogs> => {
  const store = await openStore({ directory: join(directory, "replay"), snapshotShape: "bench" })
  const runesEach = Math.min(runes, RUNES_PER_CONVERSATION)
  const told = tellStory(runesEach)
  const ids = seededIdSource(3)
  const conversationIds = Array.from({ length: Math.ceil(runes / runesEach) }, () => makeConversationId(ids))
  for (const conversation_id of conversationIds) {
    for (let at = 0; at < told.length; at += BATCH_RUNES) {
      const batch = told.slice(at, at + BATCH_RUNES).map((rune): Rune => ({ ...rune, conversation_id }))
      await store.runes.appendNow(conversation_id, batch)
    }
  }
  await store.runelog.checkpoint()
  return { store, conversationIds, runesEach }
}

export const replayNames = {
  replay: "replay: pages, checksum, decode, fold",
  read: "replay, of this reading: pages and checksum",
  decode: "replay, of this reading and decoding",
  parse: "JSON.parse of the same bytes"
} as const

/** Goes through all logs page by page, over and over. */
class Walk {
  private readonly logs: ReplayLogs
  private at = 0
  private after = 0

  constructor(logs: ReplayLogs) {
    this.logs = logs
  }

  /** Where the next page begins, and whether a new log does. */
  get place(): { readonly conversationId: ConversationId; readonly after: number } {
    return { conversationId: this.logs.conversationIds[this.at]!, after: this.after }
  }

  move(page: { readonly next: number; readonly head: number }): void {
    this.after = page.next
    if (page.next < page.head) return
    this.after = 0
    this.at = (this.at + 1) % this.logs.conversationIds.length
  }
}

/** As a conversation is taken up at a start: its pages one after the other, each folded into its state. */
const makeReplay = (logs: ReplayLogs): Subject => {
  const { conversationIds, store } = logs
  let at = -1
  let pages: AsyncGenerator<RunePage> | undefined
  let state = emptyConversation(conversationIds[0]!)
  const nextPage = async (): Promise<RunePage> => {
    for (;;) {
      const { done, value } = (await pages?.next()) ?? { done: true, value: undefined }
      if (!done) return value
      if (pages !== undefined && state.head !== logs.runesEach) throw new Error(`the fold ends at ${state.head}`)
      at = (at + 1) % conversationIds.length
      state = emptyConversation(conversationIds[at]!)
      pages = store.runes.pagesNow(conversationIds[at]!, { after: 0 })
    }
  }
  const replayPage = async (): Promise<number> => {
    const page = await nextPage()
    for (const rune of page.runes) evolve(state, rune)
    if (state.head !== page.next) throw new Error(`the fold is at ${state.head}, the log at ${page.next}`)
    return page.runes.length
  }
  return subjectOf(replayNames.replay, replayPage, () => store.close())
}

const makeReadOnly = (logs: ReplayLogs): Subject => {
  const walk = new Walk(logs)
  return subjectOf(replayNames.read, async () => {
    const { after, conversationId } = walk.place
    const page = await logs.store.runes.readBytesNow(conversationId, { after })
    walk.move(page)
    return page.frames.length
  })
}

const makeDecodeOnly = (logs: ReplayLogs): Subject => {
  const walk = new Walk(logs)
  return subjectOf(replayNames.decode, async () => {
    const { after, conversationId } = walk.place
    const page = await logs.store.runes.readNow(conversationId, { after })
    walk.move(page)
    return page.runes.length
  })
}

/** The bodies of one log are in memory already; parsing turns each into text, as any reader must, and into a value. */
const makeParse = (logs: ReplayLogs): Subject => {
  const bodies: Array<Buffer> = []
  const load = async (): Promise<void> => {
    const conversationId = logs.conversationIds[0]!
    for (let after = 0; after < logs.runesEach; ) {
      const page = await logs.store.runes.readBytesNow(conversationId, { after })
      for (const { body } of page.frames) bodies.push(Buffer.from(body))
      after = page.next
    }
  }
  const parseAll = (): number => {
    let lastEventId = 0
    for (const body of bodies) lastEventId = JSON.parse(body.toString("utf8")).event_id
    if (lastEventId !== logs.runesEach) throw new Error(`the last event is ${lastEventId}`)
    return bodies.length
  }
  return { ...subjectOf(replayNames.parse, parseAll), prepare: load }
}

const subjectOf = (name: string, once: () => number | Promise<number>, close = nothing): Subject => ({
  name,
  prepare: nothing,
  sample: (seconds) => repeat(seconds, once),
  settle: nothing,
  close
})

export const makeReplaySubjects = (logs: ReplayLogs): ReadonlyArray<Subject> => [
  makeParse(logs),
  makeReadOnly(logs),
  makeDecodeOnly(logs),
  makeReplay(logs)
]

export const replayRows = (results: Results): ReadonlyArray<Row> => {
  const parse = rateRow(results, replayNames.parse, "runes/s")
  const perRune = (name: string): Row => ({
    name: `${name}: processor time`,
    value: found(results, name).cpuMicrosecondsPerItem,
    unit: "µs/rune"
  })
  const row = (name: string): Row => rateRow(results, name, "runes/s")
  return [
    parse,
    perRune(replayNames.parse),
    comparedRow(row(replayNames.replay), parse, { atLeast: 0.5 }),
    comparedRow(perRune(replayNames.replay), perRune(replayNames.parse)),
    comparedRow(row(replayNames.read), parse),
    comparedRow(perRune(replayNames.read), perRune(replayNames.parse)),
    comparedRow(row(replayNames.decode), parse),
    comparedRow(perRune(replayNames.decode), perRune(replayNames.parse))
  ]
}
