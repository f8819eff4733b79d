// JSON-RPC as MCP uses it: one object per message, told apart by what it has.

export type Json = Readonly<Record<string, unknown>>
export type MessageId = string | number

export type Message =
  | { readonly type: "request"; readonly id: MessageId; readonly method: string; readonly params: Json }
  | { readonly type: "notification"; readonly method: string; readonly params: Json }
  | { readonly type: "result"; readonly id: MessageId; readonly result: Json }
  | { readonly type: "error"; readonly id: MessageId | null; readonly code: number; readonly message: string }

export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isId = (value: unknown): value is MessageId => typeof value === "string" || typeof value === "number"

const errorOf = (id: unknown, error: Json): Message => {
  const { code, message } = error
  return {
    type: "error",
    id: isId(id) ? id : null,
    code: typeof code === "number" ? code : 0,
    message: typeof message === "string" ? message : "no message"
  }
}

/** The message in a JSON value, unless it is none. */
export const messageOf = (value: unknown): Message | undefined => {
  if (!isObject(value)) return undefined
  const { error, id, method, params, result } = value
  const given = isObject(params) ? params : {}
  if (typeof method === "string") {
    if (id === undefined) return { type: "notification", method, params: given }
    return isId(id) ? { type: "request", id, method, params: given } : undefined
  }
  if (isObject(error)) return errorOf(id, error)
  return isId(id) && isObject(result) ? { type: "result", id, result } : undefined
}

/** The messages in a text: one, or a list of them as older servers send. */
export const parseMessages = (text: string): ReadonlyArray<Message> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    const messages = (Array.isArray(value) ? value : [value]).map(messageOf)
    return messages.every((message) => message !== undefined) ? messages : undefined
  } catch {
    return undefined
  }
}

export const rpc = {
  request: (id: MessageId, method: string, params: Json): Json => ({ jsonrpc: "2.0", id, method, params }),
  notification: (method: string, params: Json): Json => ({ jsonrpc: "2.0", method, params }),
  result: (id: MessageId, result: Json): Json => ({ jsonrpc: "2.0", id, result }),
  error: (id: MessageId, code: number, message: string): Json => ({ jsonrpc: "2.0", id, error: { code, message } })
} as const

export const invalidParams = -32_602
export const methodNotFound = -32_601
export const internalError = -32_603
