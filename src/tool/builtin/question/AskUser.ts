// `ask_user`: a question of an agent to a person. It waits in the same inbox as approvals; whoever approves it gives the
// answer as `answer` among the arguments, whoever denies it declines. A model cannot answer for the person.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { ConversationState } from "../../../machine/State.ts"
import type { CallId } from "../../../rune/Ids.ts"
import { defineTool } from "../../DefineTool.ts"
import type { Input, Tool } from "../../Tool.ts"
import type { ToolContext, ToolOutcome } from "../../ToolPort.ts"
import { optional } from "../ToolSchema.ts"

const askUser = "ask_user"

export const questionLimits = {
  questionCharsMax: 4096,
  optionCharsMax: 512,
  optionsMax: 20,
  answerCharsMax: 65_536
} as const

const failed = (message: string): ToolOutcome => ({
  status: "error",
  error: { code: "invalid_arguments", message, retryable: false, source: "tool" }
})

/** What the model itself wrote, whatever a person made of it since. */
const written = (state: ConversationState, callId: CallId): Input | undefined => {
  for (const agent of state.agents) {
    const answers = agent.transcript.toReversed()
    for (const item of answers) {
      const call = item.type === "assistant" ? item.calls.find((one) => one.call_id === callId) : undefined
      if (call !== undefined) return (call.arguments ?? {}) as Input
    }
  }
  return undefined
}

const input = Schema.Struct({
  question: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(questionLimits.questionCharsMax)),
  options: optional(
    Schema.Array(Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(questionLimits.optionCharsMax)))
      .check(Schema.isMaxLength(questionLimits.optionsMax))
      .annotate({ description: "answers to choose from; the person may also say something else" })
  ),
  answer: optional(
    Schema.String.check(Schema.isMaxLength(questionLimits.answerCharsMax)).annotate({
      description: "leave this out: the person's answer goes here"
    })
  )
})

const outcomeOf = ({ answer }: typeof input.Type, context: ToolContext): ToolOutcome => {
  const original = written(context.conversation.state(), context.call_id)
  if (original?.["answer"] !== undefined) return failed("answer is for the person who is asked, and not for you")
  if (answer === undefined || answer.trim() === "") return failed("the question was allowed, and not answered")
  return { status: "success", output: answer }
}

/** Why a person's yes to a call is no answer yet; nothing when it is one, or when the call is no question. */
export const answerIssue = (toolName: string, input: unknown): string | undefined => {
  if (toolName !== askUser) return undefined
  const { answer } = (input ?? {}) as Input
  const isAnswered = typeof answer === "string" && answer.trim() !== ""
  return isAnswered ? undefined : "this is a question: an answer belongs to it"
}

export const makeAskUser = (): Tool =>
  defineTool({
    name: askUser,
    description:
      "Asks the person you work for, and waits for the answer. Use it when a decision is theirs; offer options where there are some.",
    input,
    effect_class: "pure",
    mutating: false,
    approval: "always",
    access: () => ({}),
    preview: ({ options = [], question }) => {
      const detail = options.map((option) => `- ${option}`).join("\n")
      return Effect.succeed({ title: question, ...(detail === "" ? {} : { detail }) })
    },
    run: (given, context) => Effect.sync(() => outcomeOf(given, context))
  })
