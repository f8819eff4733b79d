// What the tests of the store share: places to keep data, a scribe that writes the runes of a conversation in their
// order, and conversations of typical shapes.
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Disk } from "#runelog/disk/Disk.ts"
import { makeDiskNode } from "#runelog/disk/DiskNode.ts"
import { seededIdSource } from "#src/rune/IdSource.ts"
import {
  type AgentId,
  type CallId,
  type ConversationId,
  callIdOf,
  makeRequestId,
  makeRuneId,
  type RequestId,
  type TurnId,
  turnIdOf
} from "#src/rune/Ids.ts"
import type { Kind, PayloadOf } from "#src/rune/Kinds.ts"
import { type DraftOf, type Rune, type RuneDraft, stamp } from "#src/rune/Rune.ts"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"

export const KIB = 1024

/** Small files, so that rotation, rollover and full journals happen in tests of a few kilobytes. */
export const smallLimits = {
  journalFileBytes: 512 * KIB,
  reserveBytes: 16 * KIB,
  batchBytesMax: 256 * KIB,
  segmentBytes: 256 * KIB,
  pendingBytesMax: 1024 * KIB
}

export interface Place {
  readonly disk: Disk
  readonly directory: string
  readonly dispose: () => void
}

export const realPlace = (): Place => {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "echs-store-")))
  return { disk: makeDiskNode(), directory, dispose: () => rmSync(directory, { recursive: true, force: true }) }
}

export const memoryPlace = (): Place => ({ disk: makeDiskMemory(), directory: "/data", dispose: () => {} })

export const places: ReadonlyArray<readonly [string, () => Place]> = [
  ["the real disk", realPlace],
  ["the disk in memory", memoryPlace]
]

export const agent = "agt_0000000000000001" as AgentId

export const conversationIdOf = (number: number): ConversationId =>
  `conv_${number.toString(16).padStart(16, "0")}` as ConversationId

type DraftOptions = Partial<Omit<DraftOf<Kind>, "kind" | "payload">>

/** Writes runes of one conversation: ids in a row, a second apart. */
export class Scribe {
  readonly conversationId: ConversationId
  readonly runes: Array<Rune> = []
  private readonly ids: ReturnType<typeof seededIdSource>
  private turns = 0
  private calls = 0
  nowMs = 1_700_000_000_000

  constructor(number = 1) {
    this.conversationId = conversationIdOf(number)
    this.ids = seededIdSource(number)
  }

  add<K extends Kind>(kind: K, payload: PayloadOf<K>, options: DraftOptions = {}): Rune {
    return this.addDraft({ kind, payload, ...options } as unknown as RuneDraft)
  }

  addDraft(draft: RuneDraft): Rune {
    this.nowMs += 1000
    const rune = stamp(draft, {
      event_id: this.runes.length + 1,
      rune_id: makeRuneId(this.ids),
      conversation_id: this.conversationId,
      ts_ms: this.nowMs
    })
    this.runes.push(rune)
    return rune
  }

  begin(config: PayloadOf<"session.created">["config"] = {}): this {
    this.add("session.created", { config, principal: "local" })
    this.add("agent.spawning", { agent_id: agent, role: "root", model: "scripted/demo" }, { agent_id: agent })
    this.add("agent.ready", { agent_id: agent }, { agent_id: agent })
    this.add("session.activated", { root_agent_id: agent })
    return this
  }

  startTurn(input: string): { readonly turn_id: TurnId; readonly agent_id: AgentId } {
    this.turns += 1
    const place = { turn_id: turnIdOf(this.turns), agent_id: agent }
    this.add("turn.started", { ...place, input }, place)
    return place
  }

  /** The model streams an answer in deltas and repeats it in full. */
  answer(place: { readonly turn_id: TurnId; readonly agent_id: AgentId }, text: string, deltas: number): void {
    const request: RequestId = makeRequestId(this.ids)
    this.add("turn.model_requested", { request_id: request, provider: "scripted", model: "demo", attempt: 1 }, place)
    const size = Math.ceil(text.length / Math.max(1, deltas))
    for (let at = 0; at < text.length && deltas > 0; at += size) {
      this.add("turn.assistant_delta", { content: text.slice(at, at + size), request_id: request }, place)
    }
    this.add(
      "turn.assistant_final",
      {
        content: text,
        items: [{ type: "text", chars: text.length }],
        request_id: request,
        usage: { input_tokens: 100, output_tokens: 20, usd: 0.01 }
      },
      place
    )
  }

  /** A tool call whose output comes in pieces and then as a whole. */
  call(place: { readonly turn_id: TurnId; readonly agent_id: AgentId }, output: string, pieces: number): CallId {
    this.calls += 1
    const callId = callIdOf(this.calls)
    this.add(
      "tool.call",
      {
        call_id: callId,
        tool_name: "shell",
        arguments: { command: ["npm", "test"] },
        arguments_hash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        effect_class: "effect",
        mutating: true
      },
      place
    )
    this.add("tool.started", { call_id: callId, attempt: 1, sandbox: { level: "workspace" } }, place)
    const size = Math.ceil(output.length / Math.max(1, pieces))
    for (let at = 0; at < output.length && pieces > 0; at += size) {
      this.add("tool.progress", { call_id: callId, stream: "stdout", chunk: output.slice(at, at + size) }, place)
    }
    this.add("tool.result", { call_id: callId, status: "success", output, duration_ms: 12 }, place)
    return callId
  }

  endTurn(place: { readonly turn_id: TurnId; readonly agent_id: AgentId }, output: string): void {
    this.add(
      "turn.completed",
      { final_output: output, usage: { input_tokens: 100, output_tokens: 20, usd: 0.01 } },
      place
    )
  }

  /** One whole turn: a question, a streamed answer, a tool, another answer. */
  turn(input = "run the tests", text = "All tests pass. ".repeat(20)): this {
    const place = this.startTurn(input)
    this.answer(place, "I will run them.", 3)
    this.call(place, "ok 1 - parser\nok 2 - printer\n".repeat(10), 4)
    this.answer(place, text, 8)
    this.endTurn(place, text.slice(0, 200))
    return this
  }

  close(): this {
    this.add("session.closing", { reason: "done" })
    const usage = { input_tokens: 0, output_tokens: 0 }
    this.add("session.closed", {
      final_stats: { turns: this.turns, tool_calls: this.calls, usage, agents: 1, runes: this.runes.length, wall_ms: 1 }
    })
    return this
  }
}

export const lineOf = (rune: unknown): string => JSON.stringify(rune)
