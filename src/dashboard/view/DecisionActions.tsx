// The answers to a call that waits: allow it once, for the conversation or by a rule, with other arguments, or not at all;
// and the answer to a question.
import { signal, useSignal } from "@preact/signals"
import type { ApprovalItem } from "../../client/Client.ts"
import { role } from "../data/Connection.ts"
import { answerQuestion, approvalOf, approve, deciding, deny, type InboxItem, type Scope } from "../data/Inbox.ts"
import { isFarReaching } from "../state/Decision.ts"
import { Key } from "./Bits.tsx"

type Form = "edit" | "deny"

/** Which form of which item is open. */
const form = signal<{ readonly id: string; readonly form: Form } | undefined>(undefined)
/** The item and scope that a first tap asked for; the second tap allows. */
const armed = signal("")

const narrow = matchMedia("(max-width: 699px)")

const scopesOf = (approval: ApprovalItem): ReadonlyArray<Scope> =>
  (["once", "session", "rule"] as const).filter(
    (scope) => approval.choices.includes(scope) && (scope !== "rule" || role.value === "admin")
  )

const keyScopes: Readonly<Record<string, Scope>> = { a: "once", s: "session", r: "rule" }

/** The keys of a call that waits; true where one was taken. */
export const approvalKey = (item: InboxItem, key: string): boolean => {
  const approval = approvalOf(item)
  if (approval === undefined) return false
  if (approval.tool_name === "ask_user") {
    if (key === "d") void deny(item)
    else if (key === "e" || key === "a") document.querySelector<HTMLElement>("[data-answer]")?.focus()
    else return false
    return true
  }
  const scope = keyScopes[key]
  if (scope !== undefined && scopesOf(approval).includes(scope)) void approve(item, scope)
  else if (key === "d") void deny(item)
  else if (key === "e") form.value = { id: item.id, form: "edit" }
  else return false
  return true
}

const scopeWords: Readonly<Record<Scope, readonly [string, string]>> = {
  once: ["Allow once", "a"],
  session: ["Allow in this conversation", "s"],
  rule: ["Allow by rule", "r"]
}

const AllowButton = ({
  approval,
  item,
  scope
}: {
  readonly approval: ApprovalItem
  readonly item: InboxItem
  readonly scope: Scope
}) => {
  const [word, key] = scopeWords[scope]
  const mark = `${item.id} ${scope}`
  const needsSecond = isFarReaching(approval)
  const isArmed = armed.value === mark
  const press = (): void => {
    if (needsSecond && narrow.matches && !isArmed) armed.value = mark
    else void approve(item, scope)
  }
  return (
    <button
      type="button"
      class={scope === "once" ? "main" : ""}
      disabled={deciding.value.has(item.id)}
      onClick={press}
      data-scope={scope}
    >
      {isArmed ? "Tap again: it reaches further" : word}
      <Key name={key} />
    </button>
  )
}

const CancelButton = () => (
  <button
    type="button"
    onClick={() => {
      form.value = undefined
    }}
  >
    Cancel
  </button>
)

const EditForm = ({ approval, item }: { readonly approval: ApprovalItem; readonly item: InboxItem }) => {
  const text = useSignal(JSON.stringify(approval.arguments, null, 2))
  const failure = useSignal("")
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    try {
      const edited: unknown = JSON.parse(text.value)
      if (await approve(item, "once", { arguments: edited, done: "Allowed with other arguments" }))
        form.value = undefined
    } catch (error) {
      failure.value = `This is not JSON: ${(error as Error).message}`
    }
  }
  return (
    <form class="stack" onSubmit={submit}>
      <label class="field">
        <span class="quiet">Run it with these arguments instead (JSON)</span>
        <textarea
          class="code"
          rows={Math.min(20, text.value.split("\n").length + 1)}
          value={text.value}
          spellcheck={false}
          data-edit
          ref={(element) => {
            if (element !== null && !element.dataset["seen"]) {
              element.dataset["seen"] = "yes"
              element.focus()
            }
          }}
          onInput={(event) => {
            text.value = event.currentTarget.value
          }}
        />
      </label>
      {failure.value === "" ? null : (
        <p class="bad" role="alert">
          {failure.value}
        </p>
      )}
      <div class="actions">
        <button type="submit" class="main" disabled={deciding.value.has(item.id)}>
          Allow once with these
        </button>
        <CancelButton />
      </div>
    </form>
  )
}

const DenyForm = ({ item }: { readonly item: InboxItem }) => {
  const reason = useSignal("")
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault()
        void deny(item, reason.value)
      }}
    >
      <label class="field">
        <span class="quiet">Why not? The agent is told.</span>
        <input
          value={reason.value}
          onInput={(event) => {
            reason.value = event.currentTarget.value
          }}
        />
      </label>
      <div class="actions">
        <button type="submit" class="danger">
          Deny
        </button>
        <CancelButton />
      </div>
    </form>
  )
}

export const ApprovalActions = ({ approval, item }: { readonly approval: ApprovalItem; readonly item: InboxItem }) => {
  const open = form.value?.id === item.id ? form.value.form : undefined
  if (open === "edit") return <EditForm approval={approval} item={item} />
  if (open === "deny") return <DenyForm item={item} />
  return (
    <div class="actions decision">
      {scopesOf(approval).map((scope) => (
        <AllowButton key={scope} approval={approval} item={item} scope={scope} />
      ))}
      <button
        type="button"
        onClick={() => {
          form.value = { id: item.id, form: "edit" }
        }}
      >
        Edit <Key name="e" />
      </button>
      <button type="button" class="danger" disabled={deciding.value.has(item.id)} onClick={() => void deny(item)}>
        Deny <Key name="d" />
      </button>
      <button
        type="button"
        class="plain"
        onClick={() => {
          form.value = { id: item.id, form: "deny" }
        }}
      >
        Deny with a reason
      </button>
    </div>
  )
}

export const QuestionActions = ({ item }: { readonly approval: ApprovalItem; readonly item: InboxItem }) => {
  const text = useSignal("")
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault()
        if (text.value.trim() !== "") void answerQuestion(item, text.value)
      }}
    >
      <label class="field">
        <span class="quiet">Your answer</span>
        <textarea
          rows={3}
          value={text.value}
          data-answer
          onInput={(event) => {
            text.value = event.currentTarget.value
          }}
        />
      </label>
      <div class="actions decision">
        <button type="submit" class="main" disabled={text.value.trim() === "" || deciding.value.has(item.id)}>
          Answer
        </button>
        <button type="button" class="danger" onClick={() => void deny(item)}>
          Decline <Key name="d" />
        </button>
      </div>
    </form>
  )
}
