// What the Messages API takes: roles in turn, results first and complete after the calls, blocks, tools. From its reference.
import {
  checkBytes,
  checkFields,
  checkId,
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
  must: ["model", "max_tokens", "messages", "stream"],
  may: ["system", "tools", "thinking", "output_config"]
}

const breakpointsMax = 4

const checkSource = (found: Findings, where: string, source: Json, family: "image" | "document"): undefined => {
  if (family === "image" && source["type"] === "url") {
    return found.must(String(source["url"]).startsWith("https://"), where, "no address")
  }
  checkFields(found, where, source, { must: ["type", "media_type", "data"] })
  found.must(source["type"] === "base64", where, `a source of the kind ${String(source["type"])}`)
  const isRight =
    family === "image" ? /^image\//.test(String(source["media_type"])) : source["media_type"] === "application/pdf"
  found.must(isRight, where, `${String(source["media_type"])} is no ${family}`)
  checkBytes(found, where, source["media_type"], source["data"])
}

const checkShown = (found: Findings, where: string, block: Json): undefined => {
  const may = ["cache_control"]
  switch (block["type"]) {
    case "text":
      checkFields(found, where, block, { must: ["type", "text"], may: [...may, "citations"] })
      return found.must(!isBlank(block["text"]), where, "an empty text")
    case "image":
      checkFields(found, where, block, { must: ["type", "source"], may })
      return checkSource(found, where, mapOf(block["source"]), "image")
    case "document":
      checkFields(found, where, block, { must: ["type", "source"], may: [...may, "title"] })
      return checkSource(found, where, mapOf(block["source"]), "document")
    default:
      return found.add(where, `a block of the kind ${String(block["type"])}`)
  }
}

const checkResult = (found: Findings, where: string, block: Json): undefined => {
  const { content } = block
  checkFields(found, where, block, { must: ["type", "tool_use_id", "content"], may: ["is_error", "cache_control"] })
  if (typeof content === "string") return found.must(!isBlank(content), where, "an empty result")
  const parts = listOf(content).map(mapOf)
  found.must(parts.length > 0, where, "a result without parts")
  // An error is told in words.
  if (block["is_error"] === true)
    found.must(
      parts.every(({ type }) => type === "text"),
      where,
      "an error that shows"
    )
  for (const [index, part] of parts.entries()) checkShown(found, `${where}.content[${index}]`, part)
}

const checkUser = (
  found: Findings,
  where: string,
  blocks: ReadonlyArray<Json>,
  asked: ReadonlyArray<string>
): undefined => {
  const results = blocks.filter(({ type }) => type === "tool_result")
  const ids = results.map((block) => String(block["tool_use_id"]))
  found.must(new Set(ids).size === ids.length, where, "a call answered twice")
  found.must(
    ids.every((id) => asked.includes(id)),
    where,
    "a result without its call"
  )
  found.must(
    asked.every((id) => ids.includes(id)),
    where,
    "a call without its result"
  )
  const isFirst = blocks.slice(0, results.length).every(({ type }) => type === "tool_result")
  found.must(isFirst, where, "results after something else")
  for (const [index, block] of blocks.entries()) {
    const at = `${where}.content[${index}]`
    if (block["type"] === "tool_result") checkResult(found, at, block)
    else checkShown(found, at, block)
  }
}

const checkAssistant = (found: Findings, where: string, blocks: ReadonlyArray<Json>, seen: Set<string>): undefined => {
  for (const [index, block] of blocks.entries()) {
    const at = `${where}.content[${index}]`
    if (block["type"] === "text") checkShown(found, at, block)
    else if (block["type"] === "thinking")
      found.must(!isBlank(block["signature"]), at, "thinking without its signature")
    else if (block["type"] === "tool_use") {
      checkFields(found, at, block, { must: ["type", "id", "name", "input"], may: ["cache_control"] })
      checkId(found, at, block["id"])
      checkName(found, at, block["name"])
      found.must(isMap(block["input"]), at, "the input is no object")
      found.must(!seen.has(String(block["id"])), at, "an id that was used before")
      seen.add(String(block["id"]))
    } else found.must(block["type"] === "redacted_thinking", at, `a block of the kind ${String(block["type"])}`)
  }
  const last = blocks.at(-1)?.["type"]
  found.must(last !== "thinking" && last !== "redacted_thinking", where, "thinking at its end")
}

export const checkMessages = (found: Findings, body: Json): undefined => {
  checkFields(found, "body", body, fields)
  found.must(!isBlank(body["model"]), "model", "it is empty")
  found.must(body["stream"] === true, "stream", "it is not true")
  found.must(Number.isSafeInteger(body["max_tokens"]) && Number(body["max_tokens"]) > 0, "max_tokens", "no number")
  for (const [index, block] of listOf(body["system"]).entries()) checkShown(found, `system[${index}]`, mapOf(block))
  const messages = listOf(body["messages"]).map(mapOf)
  found.must(messages[0]?.["role"] === "user", "messages[0]", "it is not the user's")
  found.must(messages.at(-1)?.["role"] === "user", "messages", "the last is not the user's")
  const seen = new Set<string>()
  let asked: ReadonlyArray<string> = []
  for (const [index, message] of messages.entries()) {
    const where = `messages[${index}]`
    const { content, role } = message
    checkFields(found, where, message, { must: ["role", "content"] })
    found.must(role !== messages[index - 1]?.["role"], where, "two of one role in a row")
    const blocks = (typeof content === "string" ? [{ type: "text", text: content }] : listOf(content)).map(mapOf)
    found.must(blocks.length > 0, where, "a message without blocks")
    if (role === "assistant") checkAssistant(found, where, blocks, seen)
    else checkUser(found, where, blocks, asked)
    found.must(role === "assistant" || role === "user", where, `the role ${String(role)}`)
    const uses = blocks.filter(({ type }) => type === "tool_use").map((block) => String(block["id"]))
    asked = role === "assistant" ? uses : []
  }
  const marks = JSON.stringify([body["system"], body["messages"], body["tools"]]).split('"cache_control":{').length - 1
  found.must(marks <= breakpointsMax, "cache_control", `${marks} of them`)
  if (body["tools"] === undefined) return found.must(seen.size === 0, "tools", "calls without tools")
  checkTools(
    found,
    listOf(body["tools"]).map((tool) => {
      const { description, input_schema: schema, name } = mapOf(tool)
      return { name, description, schema }
    })
  )
}
