// Goal: what is read on the page is what the runes say, wherever in the log they begin. Method: runes of a turn with a tool
// that is asked about, folded whole, in part, and at every moment.
import { describe, expect, it } from "vitest"
import type { AnyRune } from "#src/client/Client.ts"
import { scaleOf, timelineOf } from "#src/dashboard/state/Timeline.ts"
import { transcriptOf } from "#src/dashboard/state/Transcript.ts"

let at = 0
const rune = (kind: string, payload: object, tsMs = at * 100): AnyRune =>
  ({
    event_id: ++at,
    rune_id: `run_${at}`,
    conversation_id: "conv_1",
    agent_id: "agt_1",
    turn_id: "turn_1",
    kind,
    visibility: "public",
    ts_ms: tsMs,
    schema_version: 1,
    payload
  }) as unknown as AnyRune

const story = (): ReadonlyArray<AnyRune> => {
  at = 0
  const call = { call_id: "call_1" }
  return [
    rune("turn.started", { turn_id: "turn_1", agent_id: "agt_1", input: "fix it", principal: "ann" }),
    rune("turn.model_requested", { provider: "scripted", model: "m", attempt: 1 }),
    rune("turn.assistant_delta", { content: "Let me " }),
    rune("turn.assistant_delta", { content: "look." }),
    rune("turn.assistant_final", { content: "Let me look.", items: [] }),
    rune("tool.call", { ...call, tool_name: "bash", arguments: { command: "ls" }, effect_class: "effect" }),
    rune("tool.approval_requested", {
      ...call,
      policy_reason: "it changes things",
      shown_as: { title: "run a command" }
    }),
    rune("tool.approved", { ...call, approver: "ben", channel: "websocket", scope: "once" }, 3_600_000),
    rune("tool.started", { ...call, attempt: 1, sandbox: { level: "bubblewrap" } }, 3_600_100),
    rune("tool.progress", { ...call, stream: "stdout", chunk: "a\n" }, 3_600_200),
    rune("tool.result", { ...call, status: "success", output: "a\nb\n", duration_ms: 40 }, 3_600_300),
    rune("turn.completed", { final_output: "", usage: {} }, 3_600_400)
  ]
}

describe("the transcript", () => {
  it("has one entry for each thing that was said or done", () => {
    expect(transcriptOf(story()).entries).toMatchObject([
      { type: "input", text: "fix it", from: "ann" },
      { type: "answer", text: "Let me look.", isStreaming: false },
      {
        type: "tool",
        name: "bash",
        approval: { why: "it changes things", decided: { word: "allowed", by: "ben" } },
        sandbox: { level: "bubblewrap" },
        progress: "",
        result: { status: "success", output: "a\nb\n" }
      }
    ])
  })

  it("is at every moment what the runes up to it say", () => {
    const runes = story()
    const texts = runes.map((_, index) => {
      const last = transcriptOf(runes.slice(0, index + 1)).entries.at(-1)
      return last?.type === "answer" ? `${last.text}${last.isStreaming ? "…" : ""}` : last?.type
    })
    expect(texts.slice(0, 6)).toEqual(["input", "input", "Let me …", "Let me look.…", "Let me look.", "tool"])
  })

  it("begins anywhere: a result without its call is still there", () => {
    expect(transcriptOf(story().slice(10)).entries).toMatchObject([{ type: "tool", callId: "call_1" }])
  })

  it("keeps no rune that a later one repeats", () => {
    expect(transcriptOf(story()).runes.map(({ kind }) => kind)).not.toContain("turn.assistant_delta")
  })

  it("shows kinds it does not know nowhere but in the runes", () => {
    const transcript = transcriptOf([rune("future.happened", { what: 1 })])
    expect(transcript.entries).toEqual([])
    expect(transcript.runes).toHaveLength(1)
  })
})

describe("the timeline", () => {
  it("has the model, the tool and the wait for a person in the lane of their agent", () => {
    const { lanes } = timelineOf(story())
    expect(lanes).toHaveLength(1)
    expect(lanes[0]?.spans.map(({ kind }) => kind)).toEqual(["model", "person", "tool"])
    expect(lanes[0]?.spans.every(({ toMs }) => toMs !== undefined)).toBe(true)
  })

  it("shortens an hour of waiting so that the work stays visible, and keeps the order of times", () => {
    const timeline = timelineOf(story())
    const place = scaleOf(timeline)
    const [model, person] = timeline.lanes[0]?.spans ?? []
    expect(place(model?.toMs ?? 0) - place(model?.fromMs ?? 0)).toBeGreaterThan(0.2)
    expect(place(person?.toMs ?? 0) - place(person?.fromMs ?? 0)).toBeLessThan(0.2)
    const times = Array.from(
      { length: 200 },
      (_, index) => timeline.fromMs + ((timeline.toMs - timeline.fromMs) * index) / 199
    )
    const places = times.map(place)
    expect([...places].sort((one, other) => one - other)).toEqual(places)
    expect(places[0]).toBe(0)
    expect(places.at(-1)).toBe(1)
  })
})
