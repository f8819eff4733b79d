// What the Chat Completions API takes: the roles, their parts, the order of calls and answers, tools. From its reference.
import {
  Calls,
  checkAddress,
  checkArguments,
  checkFields,
  checkName,
  checkTools,
  type Findings,
  isBlank,
  isMap,
  type Json,
  listOf,
  mapOf
} from "./Common.ts"

const fields = {
  must: ["model", "messages", "stream"],
  may: ["stream_options", "tools", "max_tokens", "max_completion_tokens", "reasoning_effort"]
}

const checkPart = (found: Findings, where: string, part: Json): undefined => {
  switch (part["type"]) {
    case "text":
      checkFields(found, where, part, { must: ["type", "text"] })
      return found.must(!isBlank(part["text"]), where, "an empty text")
    case "image_url":
      checkFields(found, where, part, { must: ["type", "image_url"] })
      checkFields(found, where, mapOf(part["image_url"]), { must: ["url"], may: ["detail"] })
      return checkAddress(found, where, mapOf(part["image_url"])["url"], "image")
    case "file":
      checkFields(found, where, part, { must: ["type", "file"] })
      checkFields(found, where, mapOf(part["file"]), { must: ["filename", "file_data"] })
      found.must(!isBlank(mapOf(part["file"])["filename"]), where, "a file without a name")
      return checkAddress(found, where, mapOf(part["file"])["file_data"], "document")
    default:
      return found.add(where, `a part of the kind ${String(part["type"])}`)
  }
}

const checkUser = (found: Findings, where: string, message: Json): undefined => {
  checkFields(found, where, message, { must: ["role", "content"], may: ["name"] })
  const { content } = message
  if (typeof content === "string") return found.must(!isBlank(content), where, "an empty message")
  const parts = listOf(content)
  found.must(parts.length > 0, where, "a message without parts")
  for (const [index, part] of parts.entries()) checkPart(found, `${where}.content[${index}]`, mapOf(part))
}

const checkAssistant = (found: Findings, where: string, message: Json, calls: Calls): undefined => {
  const may = ["content", "tool_calls", "refusal", "reasoning_content", "reasoning", "reasoning_details"]
  checkFields(found, where, message, { must: ["role"], may })
  const { content, tool_calls: asked } = message
  found.must(content === null || content === undefined || !isBlank(content), where, "an empty text")
  found.must(!isBlank(content) || listOf(asked).length > 0, where, "neither text nor calls")
  if (asked !== undefined) found.must(listOf(asked).length > 0, where, "an empty list of calls")
  for (const [index, value] of listOf(asked).entries()) {
    const at = `${where}.tool_calls[${index}]`
    const call = mapOf(value)
    checkFields(found, at, call, { must: ["id", "type", "function"] })
    found.must(call["type"] === "function", at, "no function")
    const called = mapOf(call["function"])
    checkFields(found, at, called, { must: ["name", "arguments"] })
    checkName(found, at, called["name"])
    checkArguments(found, at, called["arguments"])
    calls.call(at, call["id"])
  }
}

const checkMessage = (found: Findings, index: number, message: Json, calls: Calls): undefined => {
  const where = `messages[${index}]`
  const { role } = message
  if (role === "tool") {
    checkFields(found, where, message, { must: ["role", "tool_call_id", "content"] })
    // A tool's message carries text and nothing else.
    found.must(typeof message["content"] === "string" && !isBlank(message["content"]), where, "a result without text")
    return calls.answer(where, message["tool_call_id"])
  }
  calls.settled(where)
  if (role === "system" || role === "developer") {
    found.must(index === 0, where, "instructions that are not first")
    return found.must(!isBlank(message["content"]), where, "empty instructions")
  }
  if (role === "assistant") return checkAssistant(found, where, message, calls)
  found.must(role === "user", where, `the role ${String(role)}`)
  return checkUser(found, where, message)
}

export const checkChat = (found: Findings, body: Json): undefined => {
  checkFields(found, "body", body, fields)
  found.must(!isBlank(body["model"]), "model", "it is empty")
  found.must(body["stream"] === true, "stream", "it is not true")
  const messages = listOf(body["messages"])
  found.must(messages.length > 0, "messages", "none")
  found.must(!(isMap(messages[0]) && messages.length === 1 && messages[0]["role"] === "system"), "messages", "no input")
  const calls = new Calls(found)
  for (const [index, message] of messages.entries()) checkMessage(found, index, mapOf(message), calls)
  calls.settled("end")
  const roles = messages.map((message) => mapOf(message)["role"])
  const doubled = roles.findIndex((role, index) => role === "user" && roles[index + 1] === "user")
  found.must(doubled === -1, `messages[${doubled}]`, "two messages of the user in a row")
  if (body["tools"] === undefined) return found.must(!calls.any, "tools", "calls without tools")
  checkTools(
    found,
    listOf(body["tools"]).map((tool) => {
      const { description, name, parameters: schema } = mapOf(mapOf(tool)["function"])
      found.must(mapOf(tool)["type"] === "function", "tools", "no function")
      return { name, description, schema }
    })
  )
}
