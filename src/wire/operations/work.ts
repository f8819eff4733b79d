// Operations that give agents something to do: messages, goals and their plans.
import * as Schema from "effect/Schema"
import { AgentId, ConversationId, PlanId, TurnId } from "../../rune/Ids.ts"
import { GoalDemands, GoalModels } from "../../rune/kinds/evidence.ts"
import { GoalOptions } from "../../rune/kinds/plan.ts"
import { Budget, Count, Name, Ordinal } from "../../rune/kinds/shared.ts"
import { MessageMode } from "../../rune/kinds/turn.ts"
import { Changed } from "../Answers.ts"
import { InputContent } from "../Input.ts"
import { defineOperation } from "../OperationDefinition.ts"
import { because, changed, conversation, createFields, optional } from "./fields.ts"

const { Struct } = Schema
const plan = { ...because, plan_id: PlanId }

export const workOperations = [
  defineOperation({
    name: "message.post",
    role: "operator",
    mutates: true,
    input: { ...conversation, agent_id: optional(AgentId), content: InputContent, mode: optional(MessageMode) },
    /** One of `turn_id`, when a turn was started, and `queued`, its place among those that wait (0 when its turn has begun meanwhile). */
    answer: Struct({ ...changed, turn_id: optional(TurnId), queued: optional(Count) }),
    about:
      "Posts a message. `mode` is `queue` or `steer`. Answers with the `turn_id` it started, or with `queued`, its position in the queue. `bad_request` if the message is empty: only white space and no parts. See [images and files](#images-and-files)."
  }),
  defineOperation({
    name: "goal.submit",
    role: "operator",
    mutates: true,
    input: {
      goal: Name,
      conversation_id: optional(ConversationId),
      ...createFields,
      auto_start: optional(Schema.Boolean),
      max_parallel: optional(Ordinal),
      options: optional(GoalOptions),
      ...GoalDemands,
      models: optional(GoalModels)
    },
    answer: Struct({ conversation_id: ConversationId, plan_id: PlanId, ...changed }),
    about:
      "Submits a goal to an existing conversation, or to a new one with the fields of `conversation.create`. `evidence`, `hidden_evidence` and `protect` are [your own checks](AUTONOMY.md#your-own-checks), independent of the plan; `bad_request` names an invalid one."
  }),
  defineOperation({
    name: "goal.resume",
    role: "operator",
    mutates: true,
    input: { ...plan, budget: optional(Budget) },
    answer: Changed,
    about:
      "Resumes a goal that waits for a person: suspended, paused, out of budget, or with calls that need a person. Finished tasks stay finished. `budget` replaces that of the goal. `invalid_state` if the goal does not wait or has ended."
  }),
  defineOperation({
    name: "goal.demo",
    role: "operator",
    mutates: true,
    input: {},
    answer: Struct({ conversation_id: ConversationId, plan_id: PlanId, ...changed }),
    about: "Submits the goal of `echs demo`, with a scripted model in a temporary directory: no key, no network."
  }),
  defineOperation({
    name: "plan.approve",
    role: "operator",
    mutates: true,
    input: { ...plan, revision: optional(Ordinal) },
    answer: Changed,
    about: "`invalid_state` if `revision` is given and the plan has another revision by now."
  }),
  defineOperation({
    name: "plan.reject",
    role: "operator",
    mutates: true,
    input: { ...plan, revision: optional(Ordinal) },
    answer: Changed,
    about: "`invalid_state` if `revision` is given and the plan has another revision by now."
  }),
  defineOperation({
    name: "plan.cancel",
    role: "operator",
    mutates: true,
    input: plan,
    answer: Changed,
    about: "Stops the goal."
  })
] as const
