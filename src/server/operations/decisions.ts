// What people decide: approvals, interrupts and retries; and the list of what waits for them.
import * as Effect from "effect/Effect"
import { attempt } from "../../conversation/Attempt.ts"
import { approvalItems } from "../../conversation/Summary.ts"
import { CurrentOperation, change, type HandlersOf, tell } from "./CurrentOperation.ts"
import { Unauthorized } from "./OperationErrors.ts"

const approve: HandlersOf<"approval">["approval.approve"] = ({ conversation_id: id, ...decision }) =>
  Effect.gen(function* () {
    const { approvals, channel, idempotency, principal } = yield* CurrentOperation
    // For good is for all conversations: it changes the policy of the server.
    if (decision.scope === "rule" && principal.role !== "admin")
      return yield* new Unauthorized(`the role ${principal.role} is not allowed to create rules`)
    const answer = { ...decision, approver: principal.name, channel }
    const { event_id, learnt } = yield* attempt(() => approvals.approve(id, answer, idempotency))
    return { event_id, ...(learnt === undefined ? {} : { learnt }) }
  })

export const decisionHandlers: HandlersOf<"approval" | "attention" | "turn" | "hook"> = {
  "approval.list": ({ conversation_id: id }) =>
    id === undefined
      ? CurrentOperation.use(({ attention }) => attention.approvals)
      : tell(id, (state) => ({ items: approvalItems(state) })),
  "approval.approve": approve,
  "approval.deny": ({ conversation_id: id, reason = "not allowed", ...decision }) =>
    CurrentOperation.use(({ channel, principal }) =>
      change(id, { _tag: "DenyCall", ...decision, reason, approver: principal.name, channel })
    ),
  "attention.list": () => CurrentOperation.use(({ attention }) => attention.list),
  "turn.interrupt": ({ agent_id, conversation_id: id, reason = "asked for" }) =>
    CurrentOperation.use(({ outsideAgents, principal }) =>
      outsideAgents?.isRunning(id) === true
        ? outsideAgents.interrupt(id, principal.name)
        : change(id, {
            _tag: "InterruptTurn",
            reason,
            principal: principal.name,
            ...(agent_id === undefined ? {} : { agent_id })
          })
    ),
  "turn.retry": ({ agent_id, conversation_id: id }) =>
    change(id, { _tag: "RetryTurn", ...(agent_id === undefined ? {} : { agent_id }) }),
  "hook.retry": ({ conversation_id: id, ...run }) =>
    CurrentOperation.use(({ principal }) => change(id, { _tag: "RetryHook", ...run, principal: principal.name }))
}
