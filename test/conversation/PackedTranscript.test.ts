// Goal: looking at a conversation costs what it shows, however much was said in it: a load reads a snapshot and a short
// tail, and a long transcript is unpacked only by who reads it. Method: states with long transcripts through snapshots and
// back, by hand and through the real runtime; the rule by which snapshots are due, rune by rune.
// Verifies: INV-SNAPSHOT-INTEGRITY, INV-REPLAY-DETERMINISTIC
import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import { limits } from "#src/conversation/ConversationLimits.ts"
import { LoadedConversation, type RuntimeServices } from "#src/conversation/LoadedConversation.ts"
import { isUnread, packState, unpackState } from "#src/conversation/PackedTranscript.ts"
import { snapshotPort } from "#src/conversation/SnapshotStore.ts"
import { summaryOf } from "#src/conversation/Summary.ts"
import { canonicalHash } from "#src/machine/Canonical.ts"
import type { ConversationState } from "#src/machine/State.ts"
import { seededIdSource } from "#src/rune/IdSource.ts"
import { HandSink } from "../support/runtime/sink.ts"
import { useWorlds } from "../support/runtime/World.ts"
import { Story, textItem } from "../support/story.ts"

const worlds = useWorlds()

/** A conversation in which so much was said. */
const toldStory = (chars: number): Story => {
  const story = new Story().ready()
  const answer = "what was said, and “said” again · ".repeat(1000)
  for (let said = 0; said < chars; said += answer.length) {
    story.post("go on")
    story.request()
    story.respond([textItem(answer)])
  }
  return story
}

const told = (chars: number): ConversationState => toldStory(chars).state

const written = async (state: ConversationState): Promise<ConversationState> =>
  JSON.parse(JSON.stringify((await packState(state)).value)) as ConversationState

describe("a state with a long transcript", () => {
  it("comes back the same, is small until it is read, and is written again without being read", async () => {
    const state = told(4 * limits.packCharsMin)
    const hash = canonicalHash(state)
    const text = JSON.stringify(state)
    const once = await written(state)
    expect(JSON.stringify(once).length).toBeLessThan(text.length / 10)
    const loaded = unpackState(once)
    expect(loaded.agents.map(isUnread)).toEqual([true])
    const again = unpackState(await written(loaded))
    expect(loaded.agents.map(isUnread)).toEqual([true])
    for (const copy of [loaded, again]) {
      expect(canonicalHash(copy)).toBe(hash)
      expect(copy.agents.map(isUnread)).toEqual([false])
      expect(JSON.stringify(copy.agents[0]!.transcript)).toBe(JSON.stringify(state.agents[0]!.transcript))
    }
  })

  it("can be added to, and its transcript replaced, as any other", async () => {
    const state = told(2 * limits.packCharsMin)
    const [loaded, other] = [unpackState(await written(state)), unpackState(await written(state))]
    const agent = loaded.agents[0]!
    const item = { type: "summary", event_id: 1, content: "in short" } as const
    ;(agent.transcript as Array<typeof item>).push(item)
    expect(agent.transcript).toHaveLength(state.agents[0]!.transcript.length + 1)
    expect(agent.transcript.at(-1)).toEqual(item)
    Object.assign(other.agents[0]!, { transcript: [item] })
    expect(other.agents[0]!.transcript).toEqual([item])
    expect(isUnread(other.agents[0]!)).toBe(false)
    expect(canonicalHash(unpackState(await written(other)))).toBe(canonicalHash(other))
  })

  it("is read before the first wait: what changes later is not in it", async () => {
    const state = told(2 * limits.packCharsMin)
    const hash = canonicalHash(state)
    const packing = packState(state)
    Object.assign(state.agents[0]!, { transcript: [] })
    Object.assign(state, { head: state.head + 1 })
    expect(canonicalHash(unpackState((await packing).value as ConversationState))).toBe(hash)
  })
})

it("a short transcript is written as it is, and so is none", async () => {
  for (const state of [told(1), new Story().ready().state, new Story().state]) {
    const copy = await written(state)
    expect(copy.agents.map(({ transcript }) => Array.isArray(transcript))).toEqual(state.agents.map(() => true))
    expect(canonicalHash(unpackState(copy))).toBe(canonicalHash(state))
  }
})

describe("a snapshot", () => {
  const services: RuntimeServices = {
    actor: { sink: new HandSink(), ids: seededIdSource(1), clock: { nowMs: () => 0 }, mailboxMax: 1 },
    reactor: { intensity: { restartsMax: 0, withinMs: 1 } },
    workers: () => ({ perform: () => Effect.void }),
    onCrash: () => undefined,
    onQuiet: () => undefined,
    onFailure: () => undefined
  }

  /** The growth from which on a snapshot is due, of a conversation whose last one was at `snapshotAt`. */
  const dueAfter = (snapshotAt: number, more: { readonly chars?: number; readonly story?: Story } = {}): number => {
    const { chars = 0, story = new Story().ready() } = more
    const resident = new LoadedConversation(services, story.state)
    resident.snapshotAt = snapshotAt
    resident.snapshotChars = chars
    for (let grown = 1; ; grown++) {
      Object.assign(story.state, { head: snapshotAt + grown })
      if (resident.isSnapshotDue) return grown
    }
  }

  it("is due by share of a short log, and of a long one when a load would read much behind it", () => {
    expect(dueAfter(0)).toBe(limits.snapshotEveryRunes)
    expect(dueAfter(1_000)).toBe(500)
    expect(dueAfter(100_000)).toBe(limits.snapshotTailRunes)
    expect(dueAfter(1_000_000)).toBe(limits.snapshotTailRunes)
  })

  it("of a large state may wait for longer, and so may one in the midst of an answer", () => {
    const chars = 1000 * limits.snapshotCharsPerRune
    expect(dueAfter(1_000_000, { chars })).toBe(limits.snapshotTailRunes + 1000)
    const story = new Story().ready()
    story.post("go")
    story.request()
    expect(dueAfter(1_000_000, { story })).toBe(limits.snapshotTailRunes * limits.snapshotMidAnswer)
  })
})

it("a look at a conversation in which much was said leaves the transcript packed, and who reads it finds all", async () => {
  const world = await worlds.open({ snapshots: true, unchecked: true })
  const story = toldStory(4 * limits.packCharsMin)
  const { runes, state } = story
  const id = state.conversation_id
  for (let at = 0; at < runes.length; at += 20) await world.record.appendNow(id, runes.slice(at, at + 20))
  const chars = await snapshotPort({ snapshots: world.snapshots!, store: world.record }).save(state)
  expect(chars).toBeGreaterThan(4 * limits.packCharsMin)
  const looked = await world.conversations.state(id)
  expect(summaryOf(looked).last_event_id).toBe(state.head)
  expect(looked.agents.map(isUnread)).toEqual([true])
  expect(canonicalHash(looked)).toBe(canonicalHash(state))
  expect(looked.agents.map(isUnread)).toEqual([false])
})
