// `ask_user`: a question of an agent to a person. It waits in the same inbox as approvals; whoever approves it gives the
// answer as `answer` among the arguments, whoever denies it declines. A model cannot answer for the person.
import type { ConversationState } from "../../../machine/State.ts"
import type { CallId } from "../../../rune/Ids.ts"
import { promisedOutcome } from "../../PromiseWork.ts"
import type { Input, Tool } from "../../Tool.ts"
import type { ToolContext, ToolOutcome } from "../../ToolPort.ts"

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

const run = async (input: Input, context: ToolContext): Promise<ToolOutcome> => {
  const original = written(context.conversation.state(), context.call_id)
  if (original?.["answer"] !== undefined) return failed("answer is for the person who is asked, and not for you")
  const { answer } = input
  if (typeof answer !== "string" || answer.trim() === "") return failed("the question was allowed, and not answered")
  return { status: "success", output: answer }
}

/** Why a person's yes to a call is no answer yet; nothing when it is one, or when the call is no question. */
export const answerIssue = (toolName: string, input: unknown): string | undefined => {
  if (toolName !== askUser) return undefined
  const { answer } = (input ?? {}) as Input
  const isAnswered = typeof answer === "string" && answer.trim() !== ""
  return isAnswered ? undefined : "this is a question: an answer belongs to it"
}

const optionsOf = (input: Input): ReadonlyArray<string> =>
  Array.isArray(input["options"]) ? input["options"].filter((one) => typeof one === "string") : []

export const makeAskUser = (): Tool => ({
  name: askUser,
  description:
    "Asks the person you work for, and waits for the answer. Use it when a decision is theirs; offer options where there are some.",
  parameters: {
    type: "object",
    properties: {
      question: { type: "string", minLength: 1, maxLength: questionLimits.questionCharsMax },
      options: {
        type: "array",
        items: { type: "string", minLength: 1, maxLength: questionLimits.optionCharsMax },
        maxItems: questionLimits.optionsMax,
        description: "answers to choose from; the person may also say something else"
      },
      answer: {
        type: "string",
        maxLength: questionLimits.answerCharsMax,
        description: "leave this out: the person's answer goes here"
      }
    },
    required: ["question"],
    additionalProperties: false
  },
  effect_class: "pure",
  mutating: false,
  provenance: "builtin",
  approval: "always",
  access: () => ({}),
  preview: async (input) => {
    const options = optionsOf(input).map((option) => `- ${option}`)
    return { title: String(input["question"]), ...(options.length === 0 ? {} : { detail: options.join("\n") }) }
  },
  run: (input, context) => promisedOutcome(context, (signaled) => run(input, signaled))
})
