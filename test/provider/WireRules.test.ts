// Goal: the judge of request bodies sees what it is there for. Method: one body of each format that is right, and changes
// of it that each break one documented rule; every one of them is found, and the right body is taken.
import { describe, expect, it } from "vitest"
import { pdf, png } from "../support/media.ts"
import type { WireFormat } from "../support/provider-server/Server.ts"
import { problemsOf } from "../support/wire-rules/Rules.ts"

const image = `data:image/png;base64,${png().toString("base64")}`
const paper = `data:application/pdf;base64,${pdf.toString("base64")}`
const schema = { type: "object", properties: { list: { type: "array", items: {} } } }

const right: { readonly [F in WireFormat]: object } = {
  chat: {
    model: "m",
    stream: true,
    messages: [
      { role: "system", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "look" },
          { type: "image_url", image_url: { url: image } },
          { type: "file", file: { filename: "a.pdf", file_data: paper } }
        ]
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "c1", type: "function", function: { name: "act", arguments: "{}" } },
          { id: "c2", type: "function", function: { name: "act", arguments: "{}" } }
        ]
      },
      { role: "tool", tool_call_id: "c1", content: "done" },
      { role: "tool", tool_call_id: "c2", content: "done" },
      { role: "user", content: "go on" }
    ],
    tools: [{ type: "function", function: { name: "act", description: "acts", parameters: schema } }]
  },
  responses: {
    model: "m",
    stream: true,
    store: false,
    instructions: "Be brief.",
    input: [
      {
        role: "user",
        content: [
          { type: "input_text", text: "look" },
          { type: "input_image", detail: "auto", image_url: image },
          { type: "input_file", filename: "a.pdf", file_data: paper }
        ]
      },
      { type: "function_call", call_id: "c1", name: "act", arguments: "{}" },
      { type: "function_call", call_id: "c2", name: "act", arguments: "{}" },
      { type: "function_call_output", call_id: "c1", output: "done" },
      { type: "function_call_output", call_id: "c2", output: [{ type: "input_text", text: "done" }] },
      { role: "user", content: [{ type: "input_text", text: "go on" }] }
    ],
    tools: [{ type: "function", name: "act", description: "acts", parameters: schema, strict: false }]
  },
  messages: {
    model: "m",
    stream: true,
    max_tokens: 100,
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "look" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: png().toString("base64") } },
          {
            type: "document",
            source: { type: "base64", media_type: "application/pdf", data: pdf.toString("base64") },
            title: "a"
          }
        ]
      },
      {
        role: "assistant",
        content: [
          { type: "tool_use", id: "c1", name: "act", input: {} },
          { type: "tool_use", id: "c2", name: "act", input: {} }
        ]
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "c1", content: "done" },
          { type: "tool_result", tool_use_id: "c2", content: "done" },
          { type: "text", text: "go on" }
        ]
      }
    ],
    tools: [{ name: "act", description: "acts", input_schema: schema }]
  }
}

type Change = readonly [name: string, from: string, to: string]

/** What is broken in the text of the body, the same rule in each format. */
const changes: { readonly [F in WireFormat]: ReadonlyArray<Change> } = {
  chat: [
    ["an answer is missing", '{"role":"tool","tool_call_id":"c2","content":"done"},', ""],
    ["an answer comes twice", '"tool_call_id":"c2"', '"tool_call_id":"c1"'],
    ["ids repeat", '"id":"c2"', '"id":"c1"'],
    ["an id is odd", '"c1"', '"c 1"'],
    ["arguments are broken", '"arguments":"{}"', '"arguments":"{"'],
    ["a message is empty", '"content":"go on"', '"content":" "'],
    ["a result is empty", '"content":"done"', '"content":""'],
    ["calls come without tools", /,"tools":.*$/s.source, "}"],
    ["a name is odd", '"name":"act"', '"name":"a.b"'],
    ["a root is a union", '"type":"object"', '"type":"object","anyOf":[]'],
    ["a root is no object", '"type":"object"', '"type":"array"'],
    ["a list has no items", ',"items":{}', ""],
    ["an image is no base64", "base64,iVBOR", "base64,*VBOR"],
    ["an image is something else", "data:image/png", "data:image/gif"],
    ["a file has no name", '"filename":"a.pdf"', '"filename":""'],
    ["a tool shows an image", '"content":"done"', '"content":[{"type":"image_url","image_url":{"url":"https://a/b"}}]'],
    [
      "a user speaks twice",
      '{"role":"user","content":"go on"}',
      '{"role":"user","content":"a"},{"role":"user","content":"b"}'
    ],
    ["a character is halved", '"go on"', '"\\ud800"']
  ],
  responses: [
    ["an output is missing", '{"type":"function_call_output","call_id":"c1","output":"done"},', ""],
    ["an output comes twice", '"call_id":"c2","output"', '"call_id":"c1","output"'],
    ["ids repeat", '"call_id":"c2","name"', '"call_id":"c1","name"'],
    ["arguments are a list", '"arguments":"{}"', '"arguments":"[]"'],
    ["an output is empty", '"output":"done"', '"output":""'],
    ["a message has no parts", '[{"type":"input_text","text":"go on"}]', "[]"],
    ["calls come without tools", /,"tools":.*$/s.source, "}"],
    ["a root is a union", '"type":"object"', '"type":"object","oneOf":[]'],
    ["a schema has no properties", '"properties"', '"props"'],
    ["an image has no detail", '"detail":"auto",', ""],
    ["a file is no document", "data:application/pdf", "data:text/plain"],
    [
      "something comes between call and output",
      '{"type":"function_call_output","call_id":"c1"',
      '{"role":"user","content":"x"},{"type":"function_call_output","call_id":"c1"'
    ],
    [
      "reasoning leads to nothing",
      '{"role":"user","content":[{"type":"input_text","text":"go on"}]}',
      '{"type":"reasoning","encrypted_content":"x"}'
    ],
    ["a field is unknown", '"store":false', '"store":false,"messages":[]']
  ],
  messages: [
    ["a result is missing", '{"type":"tool_result","tool_use_id":"c2","content":"done"},', ""],
    ["a result comes twice", '"tool_use_id":"c2"', '"tool_use_id":"c1"'],
    ["ids repeat", '"id":"c2"', '"id":"c1"'],
    ["an input is no object", '"input":{}', '"input":"{}"'],
    [
      "results come late",
      '{"type":"tool_result","tool_use_id":"c1"',
      '{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"c1"'
    ],
    ["a text is empty", '"text":"go on"', '"text":" "'],
    ["it begins with the assistant", /\[\{"role":"user".*?\{"role":"assistant"/s.source, '[{"role":"assistant"'],
    ["it ends with the assistant", /,\{"role":"user","content":\[\{"type":"tool_result".*?\]\}\]/s.source, "]"],
    ["calls come without tools", /,"tools":.*$/s.source, "}"],
    ["a root is a union", '"type":"object"', '"type":"object","allOf":[]'],
    [
      "an error shows an image",
      '"tool_use_id":"c1","content":"done"',
      '"tool_use_id":"c1","is_error":true,"content":[{"type":"image","source":{"type":"url","url":"https://a/b"}}]'
    ],
    ["a document is no PDF", '"media_type":"application/pdf"', '"media_type":"text/plain"'],
    [
      "thinking is last",
      '{"type":"tool_use","id":"c2","name":"act","input":{}}',
      '{"type":"thinking","thinking":"x","signature":"y"}'
    ],
    ["max_tokens is missing", '"max_tokens":100,', ""]
  ]
}

describe.each(["chat", "responses", "messages"] as const)("the rules of %s", (format) => {
  it("take a body that is right", () => {
    expect(problemsOf(format, JSON.stringify(right[format]))).toEqual([])
  })

  it.each(changes[format])("see that %s", (_, from, to) => {
    const text = JSON.stringify(right[format])
    const broken = text.includes(from) ? text.replace(from, to) : text.replace(new RegExp(from, "s"), to)
    expect(broken).not.toBe(text)
    expect(problemsOf(format, broken)).not.toEqual([])
  })

  it("see that there are too many tools", () => {
    const body = structuredClone(right[format]) as { tools: Array<object> }
    const text = JSON.stringify(body.tools[0])
    body.tools = Array.from({ length: 129 }, (__, at) => JSON.parse(text.replace('"act"', `"act${at}"`)))
    body.tools[0] = JSON.parse(text)
    expect(problemsOf(format, JSON.stringify(body))).toEqual(["tools: 129 of them"])
  })
})
