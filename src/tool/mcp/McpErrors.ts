// What can go wrong between us and an MCP server, each with the code under which the model and people are told.

export type McpFailure =
  /** It could not be started or reached, or did not answer in time. */
  | "mcp_unavailable"
  /** It ended, or the connection did, before the answer came. */
  | "mcp_server_gone"
  /** What it said is not the protocol. */
  | "mcp_protocol_error"
  /** It answered with an error. */
  | "mcp_error"
  /** It no longer knows the session, so it has done nothing: the same can be asked again in a new one. */
  | "mcp_session_over"
  /** Too many servers are in use. */
  | "mcp_too_many"
  | "mcp_cancelled"

export class McpError extends Error {
  override readonly name = "McpError"
  readonly _tag = "McpError"
  readonly failure: McpFailure
  /** The code of a JSON-RPC error. */
  readonly rpcCode: number | undefined
  /** The request may have been heard and acted upon, and the answer is missing or cannot be read. */
  readonly isInDoubt: boolean

  constructor(failure: McpFailure, message: string, more: McpErrorDetail = {}) {
    super(message)
    this.failure = failure
    this.rpcCode = more.rpcCode
    this.isInDoubt = more.isInDoubt ?? false
  }
}

export interface McpErrorDetail {
  readonly rpcCode?: number
  readonly isInDoubt?: boolean
}

/** The same, of a request that may have been acted upon. It must not be asked again, whatever became of the session. */
export const inDoubt = (error: unknown, failure: McpFailure): McpError => {
  const { failure: known, message } = asMcpError(error, failure)
  return new McpError(known === "mcp_session_over" ? "mcp_server_gone" : known, message, { isInDoubt: true })
}

export const asMcpError = (error: unknown, failure: McpFailure): McpError =>
  error instanceof McpError ? error : new McpError(failure, error instanceof Error ? error.message : String(error))
