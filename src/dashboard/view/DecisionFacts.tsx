// What a call would do: its title, its exact arguments, its difference, its reach, and why somebody is asked.
import { useEffect } from "preact/hooks"
import type { ApprovalItem } from "../../client/Client.ts"
import { visible } from "../../present/VisibleText.ts"
import { mayOperate } from "../data/Connection.ts"
import { askMatches, matches } from "../data/Policy.ts"
import { argumentsOf, factsOf, previewOf } from "../state/Decision.ts"
import { recordText } from "../state/Rules.ts"
import { Exact } from "./Exact.tsx"

/** What the widest rule on offer would have matched in the past. */
const Matched = ({ approval }: { readonly approval: ApprovalItem }) => {
  const rule = approval.learns?.rule ?? approval.learns?.session
  useEffect(() => {
    if (rule !== undefined && mayOperate()) askMatches(rule)
  }, [rule])
  const found = rule === undefined ? undefined : matches.value.get(JSON.stringify(rule))
  return found === undefined ? null : (
    <>
      <dt>matched before</dt>
      <dd data-matched>{recordText(found)}</dd>
    </>
  )
}

export const DecisionFacts = ({ approval }: { readonly approval: ApprovalItem }) => {
  const { detail, diff } = previewOf(approval)
  const title = approval.shown_as?.title ?? ""
  const shown = argumentsOf(approval.arguments)
  return (
    <>
      <h1>
        {visible(title === "" ? approval.tool_name : title)}
        {title === "" || title === approval.tool_name ? null : (
          <span class="quiet mono"> {visible(approval.tool_name)}</span>
        )}
      </h1>
      {diff === undefined ? null : <Exact label="difference" text={diff} isDiff />}
      {detail === undefined ? null : <Exact label="detail" text={detail} />}
      <section class="stack" aria-label="Arguments">
        {shown.length === 0 ? <p class="quiet">No arguments.</p> : null}
        {shown.map(({ name, text }) => (
          <div key={name} class="stack tight" data-argument={name}>
            <h3 class="quiet small">{visible(name)}</h3>
            <Exact label={name} text={text} />
          </div>
        ))}
      </section>
      <dl class="facts">
        {factsOf(approval).map(([name, text]) => (
          <>
            <dt key={`${name} name`}>{name}</dt>
            <dd key={name} class={name === "look twice" ? "warm" : ""}>
              {text}
            </dd>
          </>
        ))}
        <Matched approval={approval} />
      </dl>
    </>
  )
}
