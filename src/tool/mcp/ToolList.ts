// The tools of a server as it tells of them, page by page, within bounds: what cannot be offered to a model is left out,
// and counted.
import { isDeeperThan } from "../../machine/Canonical.ts"
import { McpError } from "./McpErrors.ts"
import { mcpLimits } from "./McpLimits.ts"
import { isObject, type Json } from "./Message.ts"

export interface McpToolInfo {
  /** As the server calls it. */
  readonly name: string
  readonly title: string | undefined
  readonly description: string
  readonly inputSchema: Json
  readonly readOnly: boolean
  readonly idempotent: boolean
}

export interface ToolList {
  readonly tools: ReadonlyArray<McpToolInfo>
  /** Tools that are not offered, too many or not tools at all: how many, and the names of some. */
  readonly leftOut: { readonly count: number; readonly names: ReadonlyArray<string> }
}

export const noTools: ToolList = { tools: [], leftOut: { count: 0, names: [] } }

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

const schemaOf = (value: unknown): Json | undefined => {
  if (value === undefined) return { type: "object", properties: {} }
  if (
    !isObject(value) ||
    isDeeperThan(value, mcpLimits.depthMax) ||
    (value["type"] !== undefined && value["type"] !== "object")
  )
    return undefined
  const { $schema: _, ...schema } = value
  const whole = { type: "object", properties: {}, ...schema }
  return JSON.stringify(whole).length > mcpLimits.schemaCharsMax ? undefined : whole
}

const toolOf = (value: unknown): McpToolInfo | undefined => {
  if (!isObject(value)) return undefined
  const { annotations, description, execution, inputSchema, name, title } = value
  const schema = schemaOf(inputSchema)
  // A tool that only runs as a task cannot be called plainly.
  const needsTask = isObject(execution) && execution["taskSupport"] === "required"
  if (typeof name !== "string" || name === "" || name.length > 256 || schema === undefined || needsTask)
    return undefined
  const hints = isObject(annotations) ? annotations : {}
  return {
    name,
    title: textOf(title) ?? textOf(hints["title"]),
    description: (textOf(description) ?? "").slice(0, mcpLimits.descriptionCharsMax).toWellFormed(),
    inputSchema: schema,
    readOnly: hints["readOnlyHint"] === true,
    idempotent: hints["idempotentHint"] === true
  }
}

const nameIn = (value: unknown): string =>
  (isObject(value) ? (textOf(value["name"]) ?? "") : "").slice(0, 256).toWellFormed() || "(no name)"

/** Reads the list; a server that never comes to its end is cut off. */
export const readTools = async (
  page: (cursor: string | undefined) => Promise<Json>,
  isWanted: (name: string) => boolean
): Promise<ToolList> => {
  const tools = new Map<string, McpToolInfo>()
  const cursors = new Set<string>()
  let count = 0
  const names: Array<string> = []
  let cursor: string | undefined
  for (let pages = 0; pages < mcpLimits.pagesMax; pages += 1) {
    const { nextCursor, tools: values } = await page(cursor)
    if (!Array.isArray(values)) throw new McpError("mcp_protocol_error", "its list of tools is no list")
    for (const value of values) {
      const tool = toolOf(value)
      const isOffered = tool !== undefined && !tools.has(tool.name) && tools.size < mcpLimits.toolsPerServerMax
      if (tool !== undefined && !isWanted(tool.name)) continue
      if (isOffered) tools.set(tool.name, tool)
      else {
        count += 1
        if (names.length < mcpLimits.leftOutNamesMax) names.push(nameIn(value))
      }
    }
    if (typeof nextCursor !== "string" || cursors.has(nextCursor)) break
    cursors.add(nextCursor)
    cursor = nextCursor
  }
  return { tools: [...tools.values()], leftOut: { count, names } }
}
