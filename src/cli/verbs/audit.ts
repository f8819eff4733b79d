// `echs audit`: lists who allowed what, when and why. Derived from the runes of a conversation alone.
import type { AnyRune } from "../../client/Client.ts"
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { argumentsText } from "../render/RuneText.ts"
import { moment, oneLine, table } from "../render/Text.ts"
import { readRunes } from "../shared/ReadRunes.ts"
import { exitCode, type Terminal, type Verb } from "../Verb.ts"

export interface AuditEntry {
  readonly call_id: string
  readonly event_id: number
  readonly agent_id: string | null
  readonly tool_name: string
  /** What ran or would have run: the model's arguments, or the approver's version of them. */
  readonly arguments: unknown
  readonly arguments_hash: string | null
  /** The model's arguments, if a person changed them. */
  readonly asked_arguments?: unknown
  readonly effect_class: string
  /** `allowed by policy` when nobody was asked; `expired` when nobody answered. */
  readonly decision: "approved" | "denied" | "allowed by policy" | "expired" | "not decided" | "not run"
  /** `policy` when no person decided. */
  readonly by: string | null
  readonly channel: string | null
  readonly scope: string | null
  /** The rule behind a permission that outlives the call. */
  readonly rule: unknown
  readonly asked_ms: number | null
  readonly decided_ms: number | null
  /** Why it was allowed, asked about or denied. */
  readonly reason: string | null
  readonly started_ms: number | null
  /** The sandbox and whether it had network access; null if the call never started. */
  readonly sandbox: string | null
  readonly network: boolean | null
  readonly roots: ReadonlyArray<string> | null
  readonly result: string | null
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
type Payload = Readonly<Record<string, unknown>>

const text = (value: unknown): string | null => (typeof value === "string" ? value : null)

const entryOf = (rune: AnyRune, payload: Payload): Mutable<AuditEntry> => ({
  call_id: String(payload["call_id"]),
  event_id: rune.event_id,
  agent_id: rune.agent_id ?? null,
  tool_name: String(payload["tool_name"]),
  arguments: payload["arguments"],
  arguments_hash: text(payload["arguments_hash"]),
  effect_class: String(payload["effect_class"]),
  decision: "not run",
  by: null,
  channel: null,
  scope: null,
  rule: null,
  asked_ms: null,
  decided_ms: null,
  reason: null,
  started_ms: null,
  sandbox: null,
  network: null,
  roots: null,
  result: null
})

const started = (entry: Mutable<AuditEntry>, payload: Payload, rune: AnyRune): void => {
  const sandbox = (payload["sandbox"] ?? {}) as Payload
  entry.started_ms ??= rune.ts_ms
  entry.sandbox = text(sandbox["level"])
  entry.network = typeof sandbox["network"] === "boolean" ? sandbox["network"] : null
  entry.roots = Array.isArray(sandbox["roots"]) ? sandbox["roots"].map(String) : null
  if (entry.decision !== "not run") return
  entry.decision = "allowed by policy"
  entry.by = "policy"
  entry.decided_ms = rune.ts_ms
  entry.reason = text(sandbox["allowed_by"])
}

const approved = (entry: Mutable<AuditEntry>, payload: Payload, rune: AnyRune): void => {
  entry.decision = "approved"
  entry.by = text(payload["approver"])
  entry.channel = text(payload["channel"])
  entry.scope = text(payload["scope"])
  entry.rule = payload["rule"] ?? null
  entry.decided_ms = rune.ts_ms
  entry.arguments_hash = text(payload["arguments_hash"]) ?? entry.arguments_hash
  if (payload["arguments"] === undefined) return
  entry.asked_arguments = entry.arguments
  entry.arguments = payload["arguments"]
}

const steps: Readonly<Record<string, (entry: Mutable<AuditEntry>, payload: Payload, rune: AnyRune) => void>> = {
  "tool.approval_requested": (entry, payload, rune) => {
    entry.decision = "not decided"
    entry.asked_ms = rune.ts_ms
    entry.reason = text(payload["policy_reason"])
  },
  "tool.approved": approved,
  "tool.denied": (entry, payload, rune) => {
    entry.decision = "denied"
    entry.by = text(payload["approver"])
    entry.channel = text(payload["channel"])
    entry.decided_ms = rune.ts_ms
    entry.reason = text(payload["reason"])
  },
  "tool.started": started,
  "tool.result": (entry, payload, rune) => {
    entry.result = text(payload["status"])
    if (entry.decision !== "not decided" || entry.result !== "timeout") return
    entry.decision = "expired"
    entry.decided_ms = rune.ts_ms
  }
}

/** One entry for every call that could change something, in the order of the calls. */
export const auditOf = (runes: Iterable<AnyRune>): ReadonlyArray<AuditEntry> => {
  const entries = new Map<string, Mutable<AuditEntry>>()
  for (const rune of runes) {
    const payload = rune.payload as Payload
    const callId = String(payload["call_id"])
    if (rune.kind === "tool.call" && payload["effect_class"] !== "pure") entries.set(callId, entryOf(rune, payload))
    const entry = entries.get(callId)
    if (entry !== undefined && Object.hasOwn(steps, rune.kind)) steps[rune.kind]?.(entry, payload, rune)
  }
  return [...entries.values()]
}

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "audit",
    takes: "CONVERSATION",
    positionals: { min: 1, max: 1 },
    options: {},
    example: "echs audit last",
    notes: ["Lists every tool call that could change something: who allowed it, when, why, and how it ended."],
    run: async ({ answer, client, positionals: [named = ""], terminal }) => {
      const id = await findConversation(client, named, parts.workingDirectory())
      const items = auditOf(await readRunes(client, id, undefined))
      answer({ conversation_id: id, items }, () => auditText(items, terminal))
      return exitCode.done
    }
  })

/** The sandbox: `bubblewrap`, `bubblewrap + network`; empty if the call never ran. */
const sandboxText = ({ network, sandbox }: AuditEntry): string =>
  sandbox === null ? "" : `${sandbox}${network === true ? " + network" : ""}`

const auditText = (items: ReadonlyArray<AuditEntry>, terminal: Terminal): string => {
  if (items.length === 0) return terminal.paint("quiet", "no tool call could have changed anything\n")
  const rows = items.map((item) => [
    item.decided_ms === null ? "" : moment(item.decided_ms),
    item.call_id,
    item.decision,
    [item.by, item.channel, item.scope].filter((part) => part !== null).join(" "),
    item.result ?? "",
    sandboxText(item),
    oneLine(`${item.tool_name} ${argumentsText(item.arguments)}${item.reason === null ? "" : ` (${item.reason})`}`)
  ])
  return table(rows, terminal)
    .map(([at = "", call = "", decision = "", ...rest], index) => {
      const tone =
        items[index]?.decision === "denied" ? "notice" : items[index]?.decision === "approved" ? "good" : "quiet"
      return `${[terminal.paint("quiet", at), call, terminal.paint(tone, decision), ...rest].join("  ").trimEnd()}\n`
    })
    .join("")
}
