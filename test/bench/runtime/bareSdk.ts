// The least one can write to hear a model: the official SDK and a loop that adds up the text. Nothing is kept, nothing
// survives; this is the floor under every streamed piece.
import { Anthropic } from "@anthropic-ai/sdk"
import { OpenAI } from "openai"
import { serverKey, type WireFormat } from "../../support/provider-server/Server.ts"

export interface Heard {
  readonly text: string
  readonly deltas: number
}

export type BareLoop = (model: string, input: string) => Promise<Heard>

const makeChat =
  (client: OpenAI): BareLoop =>
  async (model, input) => {
    let text = ""
    let deltas = 0
    const messages = [{ role: "user" as const, content: input }]
    const options = { stream: true, stream_options: { include_usage: true } } as const
    for await (const chunk of await client.chat.completions.create({ model, messages, ...options })) {
      const content = chunk.choices[0]?.delta.content
      if (typeof content !== "string" || content === "") continue
      text += content
      deltas += 1
    }
    return { text, deltas }
  }

const makeResponses =
  (client: OpenAI): BareLoop =>
  async (model, input) => {
    let text = ""
    let deltas = 0
    for await (const event of await client.responses.create({ model, input, stream: true })) {
      if (event.type !== "response.output_text.delta") continue
      text += event.delta
      deltas += 1
    }
    return { text, deltas }
  }

const makeMessages =
  (client: Anthropic): BareLoop =>
  async (model, input) => {
    let text = ""
    let deltas = 0
    const messages = [{ role: "user" as const, content: input }]
    for await (const event of await client.messages.create({ model, messages, max_tokens: 1024, stream: true })) {
      if (event.type !== "content_block_delta" || event.delta.type !== "text_delta") continue
      text += event.delta.text
      deltas += 1
    }
    return { text, deltas }
  }

export const makeBareLoops = (url: string): Readonly<Record<WireFormat, BareLoop>> => {
  const openai = new OpenAI({ apiKey: serverKey, baseURL: `${url}/v1`, maxRetries: 0 })
  const anthropic = new Anthropic({ apiKey: serverKey, baseURL: url, maxRetries: 0 })
  return { chat: makeChat(openai), responses: makeResponses(openai), messages: makeMessages(anthropic) }
}
