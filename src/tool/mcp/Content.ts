// The result of a call as a model can read it. Text stays text; images, audio and files are handed on as bytes, and what
// they are is read from those.
import { isDeeperThan } from "../../machine/Canonical.ts"
import type { RawMedia, ToolOutcome } from "../ToolPort.ts"
import { mcpLimits } from "./McpLimits.ts"
import { isObject, type Json } from "./Message.ts"

const bytesOf = (base64: unknown): Buffer => Buffer.from(typeof base64 === "string" ? base64 : "", "base64")

const told = (value: unknown): string => (typeof value === "string" ? value : "")

const resourceBlock = (resource: Json): Block => {
  const { blob, text, uri } = resource
  return typeof text === "string" ? `${told(uri)}\n${text}` : mediaBlock(blob, told(uri))
}

type Block = string | RawMedia

const mediaBlock = (base64: unknown, name: string): Block => {
  const bytes = bytesOf(base64)
  return bytes.length === 0 ? `[${name}: nothing in it]` : { bytes, name }
}

const blockOf = (block: unknown): Block => {
  if (!isObject(block)) return ""
  const { data, description, name, resource, text, type, uri } = block
  switch (type) {
    case "text":
      return told(text)
    case "image":
    case "audio":
      return mediaBlock(data, "")
    case "resource_link":
      return `[${told(name)}: ${told(uri)}] ${told(description)}`.trim()
    case "resource":
      return isObject(resource) ? resourceBlock(resource) : ""
    default:
      return `[content of the kind ${told(type) || "unknown"}]`
  }
}

const tooDeep = (server: string, tool: string): ToolOutcome => {
  const message = `the answer of ${tool} of ${server} is nested deeper than ${mcpLimits.depthMax} levels`
  return { status: "error", error: { code: "mcp_protocol_error", message, retryable: false, source: "tool" } }
}

export const outcomeOf = (server: string, tool: string, result: Json): ToolOutcome => {
  if (isDeeperThan(result, mcpLimits.depthMax)) return tooDeep(server, tool)
  const { content, isError, structuredContent } = result
  const blocks = Array.isArray(content) ? content.map(blockOf).filter((block) => block !== "") : []
  const texts = blocks.filter((block) => typeof block === "string")
  const media = blocks.filter((block) => typeof block !== "string")
  const text =
    blocks.length === 0 && structuredContent !== undefined ? JSON.stringify(structuredContent) : texts.join("\n")
  const output = text.slice(0, mcpLimits.outputCharsMax).toWellFormed()
  if (isError !== true) return { status: "success", output, ...(media.length === 0 ? {} : { media }) }
  const message = `${tool} of ${server} failed: ${output.slice(0, 500)}`
  return { status: "error", output, error: { code: "mcp_tool_failed", message, retryable: false, source: "tool" } }
}
