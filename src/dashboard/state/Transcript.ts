// The transcript: a fold from runes to what is read. One entry for each message, answer, tool call and note, in the order
// in which they began; later runes about the same thing replace its entry. Runes may begin anywhere in the log.
import type { AnyRune } from "../../client/Client.ts"
import { type NoteTone, noteOf } from "./Notes.ts"
import { contentText, listOf, numberOf, objectOf, type Payload, textOf } from "./Payload.ts"

interface EntryBase {
  readonly key: string
  readonly eventId: number
  readonly tsMs: number
  readonly agentId: string
}

export interface InputEntry extends EntryBase {
  readonly type: "input"
  readonly text: string
  readonly from: string
  readonly isWaiting: boolean
  readonly images: ReadonlyArray<BlobName>
}

export interface AnswerEntry extends EntryBase {
  readonly type: "answer"
  readonly text: string
  readonly reasoning: string
  readonly isStreaming: boolean
}

export interface Approval {
  readonly why: string
  readonly title: string
  readonly diff: string
  readonly askedMs: number
  readonly decided?: { readonly word: string; readonly by: string; readonly atMs: number; readonly reason: string }
}

/** Bytes that a rune names. */
export interface BlobName {
  readonly sha256: string
  readonly bytes: number
}

const blobOf = (value: unknown): BlobName | undefined => {
  const { bytes, sha256 } = objectOf(value)
  return typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256) ? { sha256, bytes: numberOf(bytes) } : undefined
}

/** The images among attachments, or among the parts of a message. */
const imagesOf = (parts: unknown): ReadonlyArray<BlobName> =>
  listOf(parts).flatMap((part) => {
    const { blob, type } = objectOf(part)
    const named = type === "image" ? blobOf(blob) : undefined
    return named === undefined ? [] : [named]
  })

export interface ToolResult {
  readonly status: string
  readonly output: string
  readonly error: string
  readonly exitCode: number | undefined
  readonly durationMs: number
  /** The whole output, where the rune has only a part of it. */
  readonly blob: BlobName | undefined
  readonly images: ReadonlyArray<BlobName>
}

export interface ToolEntry extends EntryBase {
  readonly type: "tool"
  readonly callId: string
  readonly name: string
  readonly arguments: unknown
  readonly effectClass: string
  readonly approval?: Approval
  readonly sandbox?: { readonly level: string; readonly allowedBy: string; readonly startedMs: number }
  readonly progress: string
  readonly result?: ToolResult
}

export interface NoteEntry extends EntryBase {
  readonly type: "note"
  readonly tone: NoteTone
  readonly text: string
}

export type Entry = InputEntry | AnswerEntry | ToolEntry | NoteEntry

/** Output of a running tool that is kept for the eye; the result has all of it. */
const progressCharsMax = 20_000

const isDelta = (kind: string): boolean => kind.endsWith("_delta") || kind === "tool.progress"

export class Transcript {
  entries: Array<Entry> = []
  /** Runes that the transcript rests on, without those that a later one repeats. */
  runes: Array<AnyRune> = []
  private readonly index = new Map<string, number>()
  /** The answer that a turn is writing, by agent. */
  private readonly open = new Map<string, string>()

  apply(rune: AnyRune): void {
    if (!isDelta(rune.kind)) this.runes.push(rune)
    const payload = objectOf(rune.payload)
    const base = { eventId: rune.event_id, tsMs: rune.ts_ms, agentId: rune.agent_id ?? "" }
    const handle = handlers[rune.kind]
    if (handle === undefined) this.note(rune.kind, payload, base)
    else handle(this, payload, base, rune)
  }

  note(kind: string, payload: Payload, base: Omit<EntryBase, "key">): void {
    const note = noteOf(kind, payload)
    if (note === undefined) return
    const agentId = base.agentId || textOf(payload["agent_id"])
    this.put({ type: "note", key: `n${base.eventId}`, ...base, agentId, tone: note[0], text: note[1] })
  }

  put(entry: Entry): void {
    const at = this.index.get(entry.key)
    if (at === undefined) {
      this.index.set(entry.key, this.entries.length)
      this.entries.push(entry)
    } else this.entries[at] = entry
  }

  find<Type extends Entry["type"]>(type: Type, key: string): Extract<Entry, { type: Type }> | undefined {
    const at = this.index.get(key)
    const entry = at === undefined ? undefined : this.entries[at]
    return entry?.type === type ? (entry as Extract<Entry, { type: Type }>) : undefined
  }

  /** The answer that is being written; begun when there is none. */
  answer(base: Omit<EntryBase, "key">): AnswerEntry {
    const key = this.open.get(base.agentId) ?? `a${base.eventId}`
    this.open.set(base.agentId, key)
    return this.find("answer", key) ?? { type: "answer", key, ...base, text: "", reasoning: "", isStreaming: true }
  }

  /** Nothing more comes of the answer; one that said nothing stays away. */
  settle(agentId: string): void {
    const key = this.open.get(agentId)
    this.open.delete(agentId)
    const entry = key === undefined ? undefined : this.find("answer", key)
    if (entry !== undefined) this.put({ ...entry, isStreaming: false })
  }

  tool(payload: Payload, base: Omit<EntryBase, "key">): ToolEntry {
    const callId = textOf(payload["call_id"])
    const key = `t${callId}`
    const blank = { name: textOf(payload["tool_name"]) || "tool", arguments: {}, effectClass: "", progress: "" }
    return this.find("tool", key) ?? { type: "tool", key, callId, ...base, ...blank }
  }
}

type Base = Omit<EntryBase, "key">
type Handle = (transcript: Transcript, payload: Payload, base: Base, rune: AnyRune) => void

const delta =
  (field: "text" | "reasoning"): Handle =>
  (transcript, payload, base) => {
    const entry = transcript.answer(base)
    transcript.put({ ...entry, [field]: entry[field] + textOf(payload["content"]) })
  }

const final: Handle = (transcript, payload, base) => {
  const entry = transcript.answer(base)
  const reasoning = listOf(payload["items"])
    .map(objectOf)
    .filter(({ type }) => type === "reasoning")
    .map(({ text }) => textOf(text))
    .join("\n\n")
  const text = textOf(payload["content"])
  if (text !== "" || reasoning !== "" || entry.reasoning !== "")
    transcript.put({ ...entry, text, reasoning: reasoning || entry.reasoning, isStreaming: false })
  transcript.settle(base.agentId)
}

const decision =
  (word: string): Handle =>
  (transcript, payload, base) => {
    const entry = transcript.tool(payload, base)
    const scope = textOf(payload["scope"])
    const edited = payload["arguments"] === undefined ? "" : ", arguments edited"
    const decided = {
      word: `${word}${scope === "" || scope === "once" ? "" : ` (${scope})`}${edited}`,
      by: textOf(payload["approver"]),
      atMs: base.tsMs,
      reason: textOf(payload["reason"])
    }
    const asked = entry.approval ?? { why: "", title: "", diff: "", askedMs: base.tsMs }
    const given = payload["arguments"] === undefined ? {} : { arguments: payload["arguments"] }
    transcript.put({ ...entry, ...given, approval: { ...asked, decided } })
  }

const ended: Handle = (transcript, payload, base, rune) => {
  transcript.settle(base.agentId)
  transcript.note(rune.kind, payload, base)
}

const handlers: Readonly<Record<string, Handle>> = {
  "turn.queued": (transcript, payload, base) =>
    transcript.put({
      type: "input",
      key: `i${base.eventId}`,
      ...base,
      text: contentText(payload["input"]),
      from: textOf(payload["principal"]) || textOf(payload["from_agent_id"]),
      isWaiting: true,
      images: imagesOf(payload["input"])
    }),
  "turn.started": (transcript, payload, base) => {
    const waited = listOf(payload["queued_event_ids"]).map((id) => transcript.find("input", `i${String(id)}`))
    for (const entry of waited) if (entry !== undefined) transcript.put({ ...entry, isWaiting: false })
    if (waited.some((entry) => entry !== undefined)) return
    const text = contentText(payload["input"])
    const from = textOf(payload["principal"])
    const images = imagesOf(payload["input"])
    transcript.put({ type: "input", key: `i${base.eventId}`, ...base, text, from, images, isWaiting: false })
  },
  "turn.assistant_delta": delta("text"),
  "turn.reasoning_delta": delta("reasoning"),
  "turn.assistant_final": final,
  "turn.completed": ended,
  "turn.interrupted": ended,
  "turn.error": ended,
  "turn.retry_scheduled": ended,
  "tool.call": (transcript, payload, base) =>
    transcript.put({
      ...transcript.tool(payload, base),
      name: textOf(payload["tool_name"]),
      arguments: payload["arguments_text"] ?? payload["arguments"],
      effectClass: textOf(payload["effect_class"])
    }),
  "tool.approval_requested": (transcript, payload, base) => {
    const shown = objectOf(payload["shown_as"])
    const why = textOf(payload["policy_reason"])
    const approval = { why, title: textOf(shown["title"]), diff: textOf(shown["diff"]), askedMs: base.tsMs }
    transcript.put({ ...transcript.tool(payload, base), approval })
  },
  "tool.approved": decision("allowed"),
  "tool.denied": decision("denied"),
  "tool.started": (transcript, payload, base) => {
    const { allowed_by: allowedBy, level } = objectOf(payload["sandbox"])
    const sandbox = { level: textOf(level), allowedBy: textOf(allowedBy), startedMs: base.tsMs }
    transcript.put({ ...transcript.tool(payload, base), sandbox })
  },
  "tool.progress": (transcript, payload, base) => {
    const entry = transcript.tool(payload, base)
    const progress = `${entry.progress}${textOf(payload["chunk"])}`.slice(-progressCharsMax)
    transcript.put({ ...entry, progress })
  },
  "tool.result": (transcript, payload, base) => {
    const exit = payload["exit_code"]
    const result = {
      status: textOf(payload["status"]),
      output: textOf(payload["output"]),
      error: textOf(objectOf(payload["error"])["message"]),
      exitCode: typeof exit === "number" ? exit : undefined,
      durationMs: numberOf(payload["duration_ms"]),
      blob: blobOf(payload["output_blob"]),
      images: imagesOf(payload["attachments"])
    }
    transcript.put({ ...transcript.tool(payload, base), progress: "", result })
  }
}

export const transcriptOf = (runes: Iterable<AnyRune>): Transcript => {
  const transcript = new Transcript()
  for (const rune of runes) transcript.apply(rune)
  return transcript
}
