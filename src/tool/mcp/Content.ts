// The result of a call as a model can read it. Text stays text; what is no text is told by its kind and size.
import { isDeeperThan } from "../../machine/Canonical.ts"
import type { ToolOutcome } from "../Port.ts"
import { mcpLimits } from "./Limits.ts"
import { isObject, type Json } from "./Message.ts"

const bytesOf = (base64: unknown): number => (typeof base64 === "string" ? Math.floor((base64.length * 3) / 4) : 0)

const told = (value: unknown): string => (typeof value === "string" ? value : "")

const resourceText = (resource: Json): string => {
  const { blob, mimeType, text, uri } = resource
  if (typeof text === "string") return `${told(uri)}\n${text}`
  return `[resource ${told(uri)}, ${told(mimeType) || "binary"}, ${bytesOf(blob)} bytes]`
}

const blockText = (block: unknown): string => {
  if (!isObject(block)) return ""
  const { data, description, mimeType, name, resource, text, type, uri } = block
  switch (type) {
    case "text":
      return told(text)
    case "image":
    case "audio":
      return `[${type} ${told(mimeType)}, ${bytesOf(data)} bytes]`
    case "resource_link":
      return `[${told(name)}: ${told(uri)}] ${told(description)}`.trim()
    case "resource":
      return isObject(resource) ? resourceText(resource) : ""
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
  const blocks = Array.isArray(content) ? content.map(blockText).filter((text) => text !== "") : []
  const text =
    blocks.length === 0 && structuredContent !== undefined ? JSON.stringify(structuredContent) : blocks.join("\n")
  const output = text.slice(0, mcpLimits.outputCharsMax).toWellFormed()
  if (isError !== true) return { status: "success", output }
  const message = `${tool} of ${server} failed: ${output.slice(0, 500)}`
  return { status: "error", output, error: { code: "mcp_tool_failed", message, retryable: false, source: "tool" } }
}
