// What somebody sees who has nothing yet: what the page is for, and one button that works without a key.
import { signal } from "@preact/signals"
import { mayOperate } from "../data/Connection.ts"
import { demoFailure, runDemo } from "../data/Demo.ts"
import { addressOf } from "../data/Route.ts"
import { Banner } from "./Bits.tsx"

/** The server has no conversation yet. */
export const isWelcome = signal(false)

const steps: ReadonlyArray<readonly [string, string]> = [
  ["?", "What needs you comes here first: calls to allow, questions, plans. Every byte of a command is shown."],
  ["●", "Everything an agent does is on record: scrub back to any moment, and continue from there in a copy."],
  ["$", "Budgets stop work before it costs more than you said."]
]

export const Welcome = () => (
  <div class="empty">
    <h1>Nothing waits for you</h1>
    <ul class="steps">
      {steps.map(([mark, text]) => (
        <li key={mark}>
          <span class="mark" aria-hidden="true">
            {mark}
          </span>
          <span>{text}</span>
        </li>
      ))}
    </ul>
    {mayOperate() ? (
      <div class="actions">
        <button type="button" class="main" onClick={() => void runDemo()}>
          Run the demo goal
        </button>
        <a class="button" href={addressOf("goals", "new")}>
          Submit a goal of your own
        </a>
      </div>
    ) : null}
    <p class="quiet small">The demo is played by a script: no key, no network, a few seconds.</p>
    {demoFailure.value === "" ? null : <Banner tone="failure">{demoFailure.value}</Banner>}
  </div>
)
