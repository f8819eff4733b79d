// The policy: its rules with what each came to so far, an edit that is tried on the calls on record before it is saved, and
// the permissions that people gave, which can be taken back.
import { useEffect } from "preact/hooks"
import { visible } from "../../present/VisibleText.ts"
import { mayOperate, role } from "../data/Connection.ts"
import {
  draft,
  followPolicy,
  forgetRule,
  type Grant,
  grants,
  isTrying,
  policy,
  policyFailure,
  policyOutcome,
  record,
  revokeGrant,
  saveDraft,
  type Trial,
  trial,
  tryDraft
} from "../data/Policy.ts"
import { addressOf } from "../data/Route.ts"
import { plural } from "../state/Format.ts"
import { decisionOf, reasonOf, recordText, ruleText } from "../state/Rules.ts"
import { callSummary } from "../state/Safe.ts"
import { Age, Banner, Chip, type Tone } from "./Bits.tsx"

const isAdmin = (): boolean => role.value === "admin"

const tones: Readonly<Record<string, Tone>> = { allow: "done", ask: "person", deny: "failed" }

const RuleRow = ({
  at,
  onForget,
  rule
}: {
  readonly at: number
  readonly rule: unknown
  readonly onForget?: () => void
}) => {
  const counts = record.value?.rules[at]
  const decision = decisionOf(rule)
  return (
    <li class="rule-row" data-rule={at}>
      <span class="quiet small number">{at + 1}</span>
      <Chip tone={tones[decision] ?? "idle"} word={decision} />
      <span class="stack tight">
        <span class="mono wrap-anywhere">{ruleText(rule)}</span>
        <span class="quiet small">
          {[counts === undefined ? "" : recordText(counts), visible(reasonOf(rule))]
            .filter((part) => part !== "")
            .join(" · ")}
        </span>
      </span>
      {onForget === undefined ? null : (
        <button type="button" class="danger" onClick={onForget}>
          Revoke
        </button>
      )}
    </li>
  )
}

const Rules = () => {
  const file = policy.value
  if (file === undefined) return null
  const { learnt, mode, rules } = file
  const calls = record.value
  return (
    <section class="card stack" aria-label="Rules">
      <h2>Rules</h2>
      <p class="quiet small">
        The first rule that applies decides; then permissions; then the mode of the conversation
        {mode === null ? "" : ` (in trials: ${mode})`}.
        {calls === undefined ? "" : ` Counted over ${plural(calls.calls, "call")} on record.`}
        {calls?.complete === false ? " Older conversations were left out." : ""}
      </p>
      {rules.length + learnt.length === 0 ? (
        <p>No rules yet. Conversations in mode auto ask about everything that changes something.</p>
      ) : null}
      <ol class="rule-list">
        {rules.map((rule, at) => (
          <RuleRow key={at} at={at} rule={rule} />
        ))}
      </ol>
      {learnt.length === 0 ? null : <h3>Allowed for good by people</h3>}
      <ol class="rule-list">
        {learnt.map((rule, at) => (
          <RuleRow
            key={at}
            at={rules.length + at}
            rule={rule}
            {...(isAdmin() ? { onForget: () => forgetRule(at) } : {})}
          />
        ))}
      </ol>
    </section>
  )
}

const changeWords: Readonly<Record<string, readonly [Tone, string]>> = {
  blocked: ["failed", "would be blocked"],
  asked: ["person", "would be asked"],
  let_run: ["done", "would run"]
}

const Outcome = ({ tried }: { readonly tried: Trial }) => {
  const { calls, conversations, counts, items } = tried
  return (
    <div class="stack" data-trial>
      <p>
        <strong>{plural(calls, "call")}</strong> in {plural(conversations, "conversation")}: {counts.blocked} would be
        blocked, {counts.asked} asked, {counts.let_run} let run, {counts.same} unchanged.
      </p>
      <ul class="rule-list">
        {items.slice(0, 50).map((item) => {
          const [tone, word] = changeWords[item.change] ?? ["idle", item.change]
          return (
            <li key={`${item.conversation_id} ${item.event_id}`} class="trial-row">
              <Chip tone={tone} word={word} />
              <a class="cut mono" href={addressOf("conversation", item.conversation_id, item.event_id)}>
                {visible(item.tool_name)} {callSummary(item.arguments)}
              </a>
              <span class="quiet small nowrap">{item.happened.replaceAll("_", " ")}</span>
              <Age ms={item.ts_ms} />
            </li>
          )
        })}
      </ul>
    </div>
  )
}

const Draft = () => (
  <section class="card stack" aria-label="Edit">
    <h2>Try an edit</h2>
    <label class="field">
      <span class="quiet small">policy.json; nothing changes until it is saved</span>
      <textarea
        class="code"
        rows={Math.max(6, Math.min(24, draft.value.split("\n").length + 1))}
        spellcheck={false}
        data-policy
        value={draft.value}
        onInput={(event) => {
          draft.value = event.currentTarget.value
          trial.value = undefined
        }}
      />
    </label>
    <div class="actions">
      <button type="button" class="main" disabled={isTrying.value} onClick={() => void tryDraft()}>
        Try on history
      </button>
      {isAdmin() ? (
        <button type="button" disabled={trial.value === undefined} onClick={() => void saveDraft()}>
          Save
        </button>
      ) : (
        <span class="quiet small">Saving is for admins.</span>
      )}
    </div>
    {trial.value === undefined ? null : <Outcome tried={trial.value} />}
  </section>
)

const GrantRow = ({ grant }: { readonly grant: Grant }) => (
  <li class="rule-row" data-grant={grant.event_id}>
    <span />
    <Chip tone="done" word={grant.scope === "rule" ? "for good" : "conversation"} />
    <span class="stack tight">
      <span class="mono wrap-anywhere">
        {grant.rule === undefined ? visible(grant.tool_name) : ruleText(grant.rule)}
      </span>
      <span class="quiet small">
        by {visible(grant.approver)} in{" "}
        <a href={addressOf("conversation", grant.conversation_id, grant.event_id)}>
          {visible(grant.title) || grant.conversation_id}, rune {grant.event_id}
        </a>
      </span>
    </span>
    {mayOperate() ? (
      <button type="button" class="danger" onClick={() => revokeGrant(grant)}>
        Revoke
      </button>
    ) : null}
  </li>
)

const Grants = () => {
  const given = grants.value
  return (
    <section class="card stack" aria-label="Permissions">
      <h2>Permissions in conversations</h2>
      {given !== undefined && given.items.length === 0 ? (
        <p class="quiet">None. “Allow in this conversation” gives one.</p>
      ) : null}
      <ul class="rule-list">
        {given?.items.map((grant) => (
          <GrantRow key={`${grant.conversation_id} ${grant.event_id}`} grant={grant} />
        ))}
      </ul>
      {given?.complete === false ? <p class="quiet small">Older conversations were left out.</p> : null}
    </section>
  )
}

export const Policy = () => {
  useEffect(followPolicy, [])
  const issue = policy.value?.issue ?? null
  return (
    <section class="wide-pane" aria-label="Policy">
      <header class="pane-head">
        <h1>Policy</h1>
      </header>
      {/* Scrolled with the keyboard too. */}
      <section class="pane-body padded" tabIndex={0} aria-label="Rules and permissions">
        <div class="policy">
          {policyFailure.value === "" ? null : <Banner tone="failure">{policyFailure.value}</Banner>}
          {policyOutcome.value === "" ? null : <Banner tone="success">{policyOutcome.value}</Banner>}
          {issue === null ? null : (
            <Banner tone="failure">policy.json cannot be read, so everything is asked about: {issue}</Banner>
          )}
          <div class="policy-columns">
            <div class="stack">
              <Rules />
              <Grants />
            </div>
            {mayOperate() && policy.value !== undefined && issue === null ? <Draft /> : null}
          </div>
        </div>
      </section>
    </section>
  )
}
