// A new goal: what should be true, where, with which budget and which policy, and whether its plan is looked at first.
import { useSignal } from "@preact/signals"
import type { Fields } from "../../client/Client.ts"
import { submitGoal } from "../data/Goals.ts"
import { addressOf } from "../data/Route.ts"
import { Banner } from "./Bits.tsx"

interface Draft {
  readonly goal: string
  readonly workspace: string
  readonly model: string
  readonly usd: string
  readonly tokens: string
  readonly parallel: string
  readonly mode: "auto" | "read_only" | "full_access"
  readonly isReviewed: boolean
}

const blank: Draft = {
  goal: "",
  workspace: "",
  model: "",
  usd: "",
  tokens: "",
  parallel: "",
  mode: "auto",
  isReviewed: true
}

const numberOf = (text: string): number | undefined => (text.trim() === "" ? undefined : Number(text))

const fieldsOf = (draft: Draft): Fields<"goal.submit"> => {
  const [usd, tokens, parallel] = [draft.usd, draft.tokens, draft.parallel].map(numberOf)
  const budget = { ...(usd === undefined ? {} : { usd }), ...(tokens === undefined ? {} : { tokens }) }
  return {
    goal: draft.goal.trim(),
    auto_start: !draft.isReviewed,
    policy: { mode: draft.mode },
    ...(draft.workspace.trim() === "" ? {} : { workspace: draft.workspace.trim() }),
    ...(draft.model.trim() === "" ? {} : { model: draft.model.trim() }),
    ...(Object.keys(budget).length === 0 ? {} : { budget }),
    ...(parallel === undefined ? {} : { max_parallel: parallel })
  }
}

interface FieldsProps {
  readonly draft: Draft
  readonly set: (change: Partial<Draft>) => void
}

const textFields: ReadonlyArray<
  readonly [name: "workspace" | "model" | "usd" | "tokens" | "parallel", label: string, hint: string]
> = [
  ["workspace", "Directory on the server", "/home/me/project"],
  ["model", "Model", "the server's default"],
  ["usd", "Budget in dollars", "no limit"],
  ["tokens", "Budget in tokens", "no limit"],
  ["parallel", "Workers at once", "the server's default"]
]

const numbers: ReadonlySet<string> = new Set(["usd", "tokens", "parallel"])

const Choices = ({ draft, set }: FieldsProps) => (
  <div class="form-grid">
    {textFields.map(([name, label, hint]) => (
      <label class="field" key={name}>
        <span class="quiet">{label}</span>
        <input
          name={name}
          inputMode={numbers.has(name) ? "decimal" : "text"}
          {...(numbers.has(name) ? { pattern: "[0-9]*[.]?[0-9]*" } : {})}
          placeholder={hint}
          value={draft[name]}
          onInput={(event) => set({ [name]: event.currentTarget.value })}
        />
      </label>
    ))}
    <label class="field">
      <span class="quiet">Policy</span>
      <select value={draft.mode} onChange={(event) => set({ mode: event.currentTarget.value as Draft["mode"] })}>
        <option value="auto">auto: asks before it changes things</option>
        <option value="read_only">read only</option>
        <option value="full_access">full access</option>
      </select>
    </label>
  </div>
)

export const GoalForm = () => {
  const draft = useSignal(blank)
  const failure = useSignal("")
  const isSending = useSignal(false)
  const set = (change: Partial<Draft>): void => {
    draft.value = { ...draft.value, ...change }
  }
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    isSending.value = true
    failure.value = await submitGoal(fieldsOf(draft.value))
    isSending.value = false
  }
  return (
    <section class="wide-pane" aria-label="New goal">
      <header class="pane-head">
        <h1 class="grow">New goal</h1>
        <a class="button" href={addressOf("goals")}>
          Cancel
        </a>
      </header>
      <form class="pane-body padded column" onSubmit={submit}>
        {failure.value === "" ? null : <Banner tone="failure">{failure.value}</Banner>}
        <label class="field">
          <span class="quiet">What should be true when it is met?</span>
          <textarea
            name="goal"
            rows={4}
            required
            value={draft.value.goal}
            onInput={(event) => set({ goal: event.currentTarget.value })}
          />
        </label>
        <Choices draft={draft.value} set={set} />
        <label class="row">
          <input
            type="checkbox"
            checked={draft.value.isReviewed}
            onChange={(event) => set({ isReviewed: event.currentTarget.checked })}
          />
          Show me the plan before work begins
        </label>
        <div class="actions">
          <button type="submit" class="main" disabled={isSending.value || draft.value.goal.trim() === ""}>
            Submit
          </button>
        </div>
      </form>
    </section>
  )
}
