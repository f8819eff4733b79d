// Messages of a Codex app-server, read with distrust: every field may be missing or of another type.
import { harnessLimits } from "../HarnessLimits.ts"

export type Fields = Readonly<Record<string, unknown>>

export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {}

export const listOf = (value: unknown): ReadonlyArray<Fields> =>
  Array.isArray(value) ? value.slice(0, harnessLimits.rememberedMax).map(fieldsOf) : []

export const textOf = (value: unknown, charsMax: number = harnessLimits.nameCharsMax): string | undefined =>
  typeof value === "string" ? value.slice(0, charsMax) : undefined

export const countOf = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.min(Math.round(value), 2 ** 50) : 0

export type CodexMessage =
  | { readonly _tag: "Answer"; readonly id: number; readonly result: Fields | undefined }
  | { readonly _tag: "Request"; readonly id: string | number; readonly method: string; readonly params: Fields }
  | { readonly _tag: "Notice"; readonly method: string; readonly params: Fields }
  | { readonly _tag: "Unknown" }

export const readMessage = (value: unknown): CodexMessage => {
  const { id, method, params, result } = fieldsOf(value)
  if (typeof method === "string") {
    const isAsked = typeof id === "string" || typeof id === "number"
    return isAsked
      ? { _tag: "Request", id, method, params: fieldsOf(params) }
      : { _tag: "Notice", method, params: fieldsOf(params) }
  }
  if (typeof id !== "number") return { _tag: "Unknown" }
  return { _tag: "Answer", id, result: result === undefined ? undefined : fieldsOf(result) }
}

const shellPrefix = /^\/bin\/(?:ba|z|da)?sh -l?c /

/** The tool that an item of a turn is about; nothing where it is none. */
export const toolOf = (item: Fields): { readonly name: string; readonly input: Fields } | undefined => {
  switch (item["type"]) {
    case "commandExecution": {
      const command = textOf(item["command"], harnessLimits.messageCharsMax) ?? ""
      return { name: "shell", input: { command: command.replace(shellPrefix, ""), cwd: item["cwd"] } }
    }
    case "fileChange":
      return { name: "apply_patch", input: { changes: item["changes"] } }
    case "mcpToolCall": {
      const name = `${textOf(item["server"]) ?? "mcp"}.${textOf(item["tool"]) ?? "tool"}`
      return { name: name.slice(0, harnessLimits.nameCharsMax), input: fieldsOf(item["arguments"]) }
    }
    case "webSearch":
      return { name: "web_search", input: { query: item["query"] } }
    default:
      return undefined
  }
}

/** The text of a message of a person. */
export const promptOf = (item: Fields): string =>
  listOf(item["content"])
    .map((part) => textOf(part["text"], harnessLimits.promptCharsMax) ?? "")
    .join("\n")
    .slice(0, harnessLimits.promptCharsMax)

/** Threads that Codex runs for itself, such as the one that makes a title. */
export const isHidden = (thread: Fields): boolean => {
  const source = thread["threadSource"]
  return thread["ephemeral"] === true || (typeof source === "string" && source !== "user")
}
