// A model that does what the prompt says, in the three wire formats: `tool:NAME:{…}` is a call of that tool, `wait` an answer
// that never ends, anything else is said back. After the result of a tool it says so. Every answer uses the same tokens.
import { type Answer, plainAnswer } from "../provider-server/Answer.ts"
import { chatStream } from "../provider-server/ChatCompletions.ts"
import { messagesStream } from "../provider-server/Messages.ts"
import { responsesStream } from "../provider-server/Responses.ts"
import type { Exchange, Script, WireRequest } from "../provider-server/Server.ts"

export const tokensPerAnswer = { input: 120, output: 34 } as const

type Fields = Readonly<Record<string, unknown>>

interface Turn {
  readonly text: string
  readonly isToolResult: boolean
}

const partsOf = (content: unknown): ReadonlyArray<Fields> =>
  typeof content === "string" ? [{ type: "text", text: content }] : Array.isArray(content) ? content : []

const textIn = (content: unknown): string =>
  partsOf(content)
    .map((part) => (typeof part["text"] === "string" ? part["text"] : ""))
    .join("\n")

/** What the person said last, and whether the model was told the result of a tool since. */
const lastTurn = ({ body, format }: WireRequest): Turn => {
  const { input, messages } = body as {
    readonly input?: ReadonlyArray<Fields>
    readonly messages?: ReadonlyArray<Fields>
  }
  const items = (format === "responses" ? input : messages) ?? []
  const isResult = (item: Fields | undefined): boolean =>
    item?.["type"] === "function_call_output" ||
    item?.["role"] === "tool" ||
    partsOf(item?.["content"]).some(({ type }) => type === "tool_result")
  const prompts = items
    .filter((item) => item["role"] === "user" && !isResult(item))
    .map((item) => textIn(item["content"]))
  const directed = prompts.findLast((text) => /(^|\n)(tool:|say |wait)/.test(text)) ?? ""
  return { text: directed, isToolResult: isResult(items.at(-1)) }
}

const answerTo = ({ isToolResult, text }: Turn, index: number): Answer => {
  const base = {
    ...plainAnswer,
    inputTokens: tokensPerAnswer.input,
    outputTokens: tokensPerAnswer.output,
    cachedTokens: 0
  }
  const [, name = "", input = ""] = /(?:^|\n)tool:([\w.]+):(\{.*\})/.exec(text) ?? []
  if (isToolResult || name === "") {
    const said = isToolResult ? "done with the tool" : (/(?:^|\n)say (.*)/.exec(text)?.[1] ?? "nothing to say")
    return { ...base, text: said }
  }
  return {
    ...base,
    text: "I will call it.",
    calls: [{ id: `call_${index}x${Date.now()}`, name, arguments: input }],
    stop: "calls"
  }
}

const streams = { responses: responsesStream, chat: chatStream, messages: messagesStream } as const

export const directed: Script = (request, index): Exchange => {
  const turn = lastTurn(request)
  // Ids that come twice are taken for the same message.
  const body = streams[request.format](answerTo(turn, index)).replaceAll(/"((?:msg|resp|fc|rs)_\w+)"/g, `"$1${index}"`)
  const waits = /(^|\n)wait/.test(turn.text) && !turn.isToolResult
  return waits ? { body, cutAfter: Math.floor(body.length / 2), ending: "stall" } : { body }
}
