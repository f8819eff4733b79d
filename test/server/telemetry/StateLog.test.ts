// Goal: the log of the process tells what an operator needs to follow a conversation: changes of state, runs of tools and
// hooks with their duration, errors by their code, and how outside agents ended, each under the same field names. Method:
// conversations told in runes, and what the log was given for them.
import { describe, expect, it } from "vitest"
import { stateEvents } from "#src/machine/view/StateEvents.ts"
import type { CallId, HookRunId } from "#src/rune/Ids.ts"
import { logEvent, logExit } from "#src/server/telemetry/StateLog.ts"
import { callItem, Story, writeTool } from "../../support/story.ts"

interface Entry {
  readonly level: string
  readonly message: string
  readonly [field: string]: unknown
}

/** Everything the log is given for the story. */
const entriesOf = (story: Story): ReadonlyArray<Entry> => {
  const entries: Array<Entry> = []
  const log = {
    write: (level: string, message: string, fields: object = {}) => void entries.push({ ...fields, level, message })
  }
  for (const event of stateEvents(story.runes)) {
    const rune = story.runes.find(({ event_id }) => event_id === Number.parseInt(event.eventId, 10))!
    logEvent(log, event, rune)
  }
  for (const rune of story.runes) logExit(log, rune)
  return entries
}

const named = (story: Story, message: string): ReadonlyArray<Entry> =>
  entriesOf(story).filter((entry) => entry.message === message)

describe("the log of the process", () => {
  const hooked = (): Story => {
    const story = new Story().inBatch(callItem("write", writeTool, '{"secret":"xyzzy"}'))
    story.start("call_1")
    story.run({ _tag: "FinishCall", call_id: "call_1" as CallId, status: "success", output: "plugh", duration_ms: 17 })
    story.settle([{ hook_name: "lint", failure_policy: { type: "fail_session" }, timeout_ms: 9, effect_class: "pure" }])
    story.run({ _tag: "StartHook", hook_run_id: "hookrun_1" as HookRunId })
    const error = { code: "hook_execution_failed", message: "no" }
    const ended = { status: "failed", duration_ms: 23, output: "plover", error } as const
    story.run({ _tag: "FinishHook", hook_run_id: "hookrun_1" as HookRunId, ...ended })
    return story
  }

  it("tells runs of tools and hooks when they start and when they are over, with how long they took", () => {
    const story = hooked()
    const place = { session_id: story.conversationId, agent_id: story.root, stream_id: "turn_1" }
    const tool = { ...place, level: "info", tool_name: "write", attempt: 1, run_id: story.state.calls[0]?.run_id }
    const runId = named(story, "tool started")[0]?.["run_id"]
    expect(runId).toMatch(/^toolrun_/)
    expect(named(story, "tool started")).toEqual([{ ...tool, run_id: runId, message: "tool started" }])
    expect(named(story, "tool completed")).toEqual([
      { ...tool, run_id: runId, message: "tool completed", status: "Succeeded", duration_ms: 17 }
    ])
    const hook = { ...place, level: "info", hook_name: "lint", attempt: 1, run_id: "hookrun_1" }
    expect(named(story, "hook started")).toEqual([{ ...hook, message: "hook started" }])
    expect(named(story, "hook completed")).toEqual([
      {
        ...hook,
        message: "hook completed",
        status: "Failed",
        duration_ms: 23,
        error_code: "hook_execution_failed"
      }
    ])
  })

  it("tells every change of state with where it came from and went", () => {
    const story = hooked()
    const changes = named(story, "state changed").map(({ from, session_id: id, to }) => [id, from, to])
    expect(changes).toEqual(
      stateEvents(story.runes).flatMap((event) =>
        event.type === "state_changed" ? [[story.conversationId, event.from, event.to]] : []
      )
    )
    expect(changes.length).toBeGreaterThan(6)
  })

  it("names an error by its code, and has neither arguments nor outputs", () => {
    const story = hooked()
    expect(named(story, "session error")).toMatchObject([
      { level: "warn", session_id: story.conversationId, error_code: "hook_execution_failed", retryable: false }
    ])
    for (const word of ["xyzzy", "plugh", "plover"]) expect(JSON.stringify(entriesOf(story))).not.toContain(word)
  })

  it("tells how an outside agent ended: its exit code and the reason", () => {
    const story = new Story().ready()
    story.run({ _tag: "AttachHarness", agent_id: story.root, payload: { harness: "claude", pid: 4711 } })
    const payload = { reason: "it crashed", exit_code: 3 }
    story.run({ _tag: "DetachHarness", agent_id: story.root, payload })
    expect(named(story, "harness exited")).toEqual([
      {
        level: "info",
        message: "harness exited",
        session_id: story.conversationId,
        agent_id: story.root,
        exit_code: 3,
        reason: "it crashed"
      }
    ])
  })
})
