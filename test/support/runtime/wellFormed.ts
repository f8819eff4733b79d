// What the three APIs demand of a request, as far as a conversation can break it: every call answered once, right after
// the message that made it, in its order; no answer without its call; ids unique; nothing that cannot be encoded.
import { expect } from "vitest"
import type { WireFormat, WireRequest } from "../provider-server/Server.ts"

type Row = Readonly<Record<string, unknown>>
const rows = (value: unknown): ReadonlyArray<Row> => (value ?? []) as ReadonlyArray<Row>

/** Calls and answers of a request, in the order of the wire; `|` separates messages that are neither. */
const traceOf: { readonly [F in WireFormat]: (body: Row) => ReadonlyArray<string> } = {
  responses: (body) =>
    rows(body["input"]).flatMap((item) => {
      if (item["type"] === "function_call") return [`call ${item["call_id"]}`]
      if (item["type"] === "function_call_output") return [`answer ${item["call_id"]}`]
      return item["role"] === "user" ? ["|"] : []
    }),
  chat: (body) =>
    rows(body["messages"]).flatMap((item) => {
      if (item["role"] === "tool") return [`answer ${item["tool_call_id"]}`]
      return item["role"] === "assistant" ? rows(item["tool_calls"]).map((call) => `call ${call["id"]}`) : ["|"]
    }),
  messages: (body) =>
    rows(body["messages"]).flatMap((message) =>
      rows(message["content"]).flatMap((block) => {
        if (block["type"] === "tool_use") return [`call ${block["id"]}`]
        if (block["type"] === "tool_result") return [`answer ${block["tool_use_id"]}`]
        return message["role"] === "user" ? ["|"] : []
      })
    )
}

const isCall = (entry: string): boolean => entry.startsWith("call ")

/** Every request the server received is one the real API would take. */
export const expectWellFormed = (requests: ReadonlyArray<WireRequest>): void => {
  for (const { body, bodyText, format } of requests) {
    const trace = traceOf[format](body as Row)
    const calls = trace.filter(isCall).map((entry) => entry.slice("call ".length))
    expect(new Set(calls).size, "call ids are unique").toBe(calls.length)
    let open: Array<string> = []
    for (const entry of trace) {
      if (isCall(entry)) open.push(entry.slice("call ".length))
      else if (entry === "|") expect(open, "nothing comes between calls and their answers").toEqual([])
      else expect(entry.slice("answer ".length), "answers come in the order of their calls").toBe(open.shift())
    }
    expect(open, "no call without its answer").toEqual([])
    open = []
    expect(bodyText.isWellFormed()).toBe(true)
    expect(/\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])/i.test(bodyText), "no lone surrogate").toBe(false)
  }
}
