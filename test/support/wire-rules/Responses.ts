// What the Responses API takes as a list of items: messages, calls and their outputs, reasoning, tools. From its reference.
import {
  Calls,
  checkAddress,
  checkArguments,
  checkFields,
  checkName,
  checkTools,
  type Findings,
  isBlank,
  type Json,
  listOf,
  mapOf
} from "./Common.ts"

const fields = {
  must: ["model", "input", "stream", "store"],
  may: ["instructions", "tools", "max_output_tokens", "prompt_cache_key", "include", "reasoning"]
}

const checkPart = (found: Findings, where: string, part: Json): undefined => {
  switch (part["type"]) {
    case "input_text":
      checkFields(found, where, part, { must: ["type", "text"] })
      return found.must(!isBlank(part["text"]), where, "an empty text")
    case "input_image":
      checkFields(found, where, part, { must: ["type", "detail", "image_url"] })
      found.must(["auto", "low", "high", "original"].includes(String(part["detail"])), where, "an unknown detail")
      return checkAddress(found, where, part["image_url"], "image")
    case "input_file":
      checkFields(found, where, part, { must: ["type", "filename", "file_data"] })
      found.must(!isBlank(part["filename"]), where, "a file without a name")
      return checkAddress(found, where, part["file_data"], "document")
    default:
      return found.add(where, `a part of the kind ${String(part["type"])}`)
  }
}

const checkParts = (found: Findings, where: string, parts: ReadonlyArray<unknown>): undefined => {
  found.must(parts.length > 0, where, "no parts")
  for (const [index, part] of parts.entries()) checkPart(found, `${where}[${index}]`, mapOf(part))
}

const checkMessage = (found: Findings, where: string, item: Json): undefined => {
  const { content, role } = item
  checkFields(found, where, item, { must: ["role", "content"], may: ["type", "phase"] })
  found.must(["user", "assistant", "system", "developer"].includes(String(role)), where, `the role ${String(role)}`)
  if (typeof content === "string") return found.must(!isBlank(content), where, "an empty message")
  found.must(role !== "assistant", where, "parts of an input in an answer")
  return checkParts(found, `${where}.content`, listOf(content))
}

const checkItem = (found: Findings, where: string, item: Json, calls: Calls): undefined => {
  if (item["type"] === "function_call_output") {
    checkFields(found, where, item, { must: ["type", "call_id", "output"] })
    const { output } = item
    if (typeof output === "string") found.must(!isBlank(output), where, "an empty output")
    else checkParts(found, `${where}.output`, listOf(output))
    return calls.answer(where, item["call_id"])
  }
  if (item["type"] === "function_call") {
    checkFields(found, where, item, { must: ["type", "call_id", "name", "arguments"] })
    checkName(found, where, item["name"])
    checkArguments(found, where, item["arguments"])
    return calls.call(where, item["call_id"])
  }
  if (item["type"] === "reasoning") {
    return found.must(!isBlank(item["encrypted_content"]), where, "reasoning that was kept nowhere")
  }
  if (mapOf(item)["role"] === "user") calls.settled(where)
  return checkMessage(found, where, item)
}

/** A reasoning item belongs to what follows it. */
const checkReasoning = (found: Findings, items: ReadonlyArray<Json>): undefined => {
  for (const [index, item] of items.entries()) {
    if (item["type"] !== "reasoning") continue
    const next = items[index + 1]
    const isLed = next !== undefined && next["role"] !== "user" && next["type"] !== "function_call_output"
    found.must(isLed, `input[${index}]`, "reasoning that leads to nothing")
  }
}

export const checkResponses = (found: Findings, body: Json): undefined => {
  checkFields(found, "body", body, fields)
  found.must(!isBlank(body["model"]), "model", "it is empty")
  found.must(body["stream"] === true, "stream", "it is not true")
  if ("instructions" in body) found.must(!isBlank(body["instructions"]), "instructions", "they are empty")
  const items = listOf(body["input"]).map(mapOf)
  found.must(items.length > 0, "input", "none")
  const calls = new Calls(found)
  for (const [index, item] of items.entries()) checkItem(found, `input[${index}]`, item, calls)
  calls.settled("end")
  checkReasoning(found, items)
  if (body["tools"] === undefined) return found.must(!calls.any, "tools", "calls without tools")
  checkTools(
    found,
    listOf(body["tools"]).map((tool) => {
      const { description, name, parameters: schema, type } = mapOf(tool)
      found.must(type === "function", "tools", "no function")
      return { name, description, schema }
    })
  )
}
