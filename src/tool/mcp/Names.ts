// The name under which a model knows a tool of an MCP server: `server__tool`, in the characters and the length that all
// providers take. What had to be changed carries a few digits of its own hash, so that no two tools share a name.
import { createHash } from "node:crypto"
import { mcpLimits } from "./McpLimits.ts"

const digits = 6

const isFit = (name: string): boolean => /^[a-zA-Z0-9_-]+$/u.test(name) && name.length <= mcpLimits.nameCharsMax

export const isServerName = (name: string): boolean =>
  /^[a-zA-Z0-9](?:[a-zA-Z0-9_-]*[a-zA-Z0-9])?$/u.test(name) &&
  !name.includes("__") &&
  name.length <= mcpLimits.serverNameCharsMax

export const offeredName = (server: string, tool: string): string => {
  const plain = `${server}__${tool}`
  if (isFit(plain)) return plain
  const hash = createHash("sha256").update(plain).digest("hex").slice(0, digits)
  const cut = plain.replaceAll(/[^a-zA-Z0-9_-]/gu, "_").slice(0, mcpLimits.nameCharsMax - digits - 1)
  return `${cut}_${hash}`
}

/** The server in a name, if it can be one of ours. */
export const serverIn = (offered: string): string | undefined => {
  const at = offered.indexOf("__")
  return at <= 0 ? undefined : offered.slice(0, at)
}
