// A tool call in the transcript: one line closed; open, its exact arguments and output, who allowed it and when, where it
// ran and for how long.
import { useSignal } from "@preact/signals"
import { memo } from "preact/compat"
import { idOfCall } from "../data/Inbox.ts"
import { addressOf } from "../data/Route.ts"
import { argumentsOf } from "../state/Decision.ts"
import { clock, duration } from "../state/Format.ts"
import { callSummary, safeText } from "../state/Safe.ts"
import type { ToolEntry } from "../state/Transcript.ts"
import { Age, Chip, type Tone } from "./Bits.tsx"
import { Exact } from "./Exact.tsx"
import { PlainText } from "./MarkdownView.tsx"
import { Images, WholeOutput } from "./WholeOutput.tsx"

const stateOf = ({ approval, result, sandbox }: ToolEntry): readonly [Tone, string] => {
  if (result !== undefined) {
    const code = result.exitCode === undefined || result.exitCode === 0 ? "" : ` · exit ${result.exitCode}`
    const word = `${result.status}${code} · ${duration(result.durationMs)}`
    if (result.status === "success") return ["done", `${duration(result.durationMs)}${code}`]
    return [result.status === "denied" || result.status === "cancelled" ? "closed" : "failed", word]
  }
  if (sandbox !== undefined) return ["running", "running"]
  return approval !== undefined && approval.decided === undefined
    ? ["person", "waits for you"]
    : ["waiting", "asked for"]
}

const Provenance = ({ entry }: { readonly entry: ToolEntry }) => {
  const { approval, sandbox } = entry
  const decided = approval?.decided
  return (
    <dl class="facts small">
      {approval === undefined ? null : (
        <>
          <dt>asked</dt>
          <dd>
            {clock(approval.askedMs)}, {safeText(approval.why)}
          </dd>
        </>
      )}
      {decided === undefined ? null : (
        <>
          <dt>{decided.word}</dt>
          <dd>
            by {safeText(decided.by)} at {clock(decided.atMs)}
            {decided.reason === "" ? "" : `: ${safeText(decided.reason)}`}
          </dd>
        </>
      )}
      {sandbox === undefined ? null : (
        <>
          <dt>ran in</dt>
          <dd>
            {sandbox.level}
            {sandbox.allowedBy === "" ? "" : `, allowed by ${safeText(sandbox.allowedBy)}`}
          </dd>
        </>
      )}
      {entry.effectClass === "" ? null : (
        <>
          <dt>effect</dt>
          <dd>{entry.effectClass}</dd>
        </>
      )}
      <dt>rune</dt>
      <dd>{entry.eventId}</dd>
    </dl>
  )
}

const Details = ({ entry }: { readonly entry: ToolEntry }) => {
  const { approval, progress, result } = entry
  const output = result === undefined ? progress : [result.output, result.error].filter((one) => one !== "").join("\n")
  return (
    <div class="tool-details stack">
      {approval === undefined || approval.diff === "" ? null : <Exact label="difference" text={approval.diff} isDiff />}
      {argumentsOf(entry.arguments).map(({ name, text }) => (
        <div key={name} class="stack tight">
          <span class="quiet small">{safeText(name)}</span>
          <Exact label={name} text={text} />
        </div>
      ))}
      {result?.blob !== undefined ? (
        <WholeOutput blob={result.blob} output={output} />
      ) : output === "" ? null : (
        <PlainText label="output" text={output} />
      )}
      <Images blobs={result?.images ?? []} />
      <Provenance entry={entry} />
    </div>
  )
}

export const ToolRow = memo(
  ({ conversationId, entry }: { readonly conversationId: string; readonly entry: ToolEntry }) => {
    const isOpen = useSignal(false)
    const [tone, word] = stateOf(entry)
    return (
      <div class="tool">
        <button
          type="button"
          class="tool-line"
          aria-expanded={isOpen.value}
          onClick={() => {
            isOpen.value = !isOpen.value
          }}
        >
          <span aria-hidden="true">{isOpen.value ? "▾" : "▸"}</span>
          <span class="mono strong">{safeText(entry.name)}</span>
          <span class="cut quiet mono grow left">{callSummary(entry.arguments)}</span>
          <Chip tone={tone} word={word} />
        </button>
        {tone === "person" ? (
          <p class="waits">
            <a href={addressOf("inbox", idOfCall(conversationId, entry.callId))}>Decide in the inbox</a>{" "}
            <Age ms={entry.approval?.askedMs ?? null} />
          </p>
        ) : null}
        {!isOpen.value && entry.progress !== "" ? (
          <pre class="code-block output live" title="live output">
            {safeText(entry.progress.split("\n").slice(-6).join("\n"))}
          </pre>
        ) : null}
        {isOpen.value ? <Details entry={entry} /> : null}
      </div>
    )
  }
)
