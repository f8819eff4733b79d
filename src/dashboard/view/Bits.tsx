// Small pieces that every view is made of: state as shape, color and word; times; badges; banners.
import { signal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { age, moment } from "../state/Format.ts"

/** Seconds of the page's own clock: ages move without a rune. */
const nowMs = signal(Date.now())
setInterval(() => {
  nowMs.value = Date.now()
}, 1000)

export const Age = ({ ms }: { readonly ms: number | null }) =>
  ms === null ? null : (
    <time class="quiet small" dateTime={new Date(ms).toISOString()} title={moment(ms)}>
      {age(Math.max(0, nowMs.value - ms))}
    </time>
  )

export type Tone = "running" | "waiting" | "person" | "done" | "failed" | "paused" | "closed" | "idle"

const shapes: Readonly<Record<Tone, string>> = {
  running: "●",
  waiting: "◐",
  person: "?",
  done: "✓",
  failed: "✕",
  paused: "⏸\uFE0E",
  closed: "■",
  idle: "○"
}

export const Chip = ({ tone, word }: { readonly tone: Tone; readonly word: string }) => (
  <span class={`chip ${tone}`}>
    <span class={`shape ${tone === "running" ? "pulse" : ""}`} aria-hidden="true">
      {shapes[tone]}
    </span>
    {word}
  </span>
)

export const toneOfConversation = (state: string, attention: string): readonly [Tone, string] => {
  if (state === "paused") return ["paused", "paused"]
  if (state === "suspended") return ["person", "suspended"]
  if (state === "closed" || state === "archived") return ["closed", state]
  if (state === "closing") return ["waiting", "closing"]
  if (attention === "awaiting_approval") return ["person", "needs approval"]
  if (attention === "awaiting_input") return ["person", "needs an answer"]
  if (attention === "error") return ["failed", "failed"]
  if (attention === "running" || attention === "starting") return ["running", attention]
  return ["idle", attention === "closed" ? "closed" : "idle"]
}

export const Banner = ({
  children,
  tone = "warm"
}: {
  readonly children: ComponentChildren
  readonly tone?: "warm" | "failure" | "success"
}) => (
  <div class={`banner ${tone === "warm" ? "" : tone}`} role="status">
    {children}
  </div>
)

export const Key = ({ name }: { readonly name: string }) => (
  <span class="kbd" aria-hidden="true">
    {name}
  </span>
)
