// Where the endpoints are that are answered without the router. Plain text, so that a server to which only sockets and
// these requests come never loads the router.

export const directPaths = {
  checkHealth: "/healthz",
  callOperation: "/v1/rpc",
  getConversation: "/v1/conversations/:conversation_id",
  readRunes: "/v1/conversations/:conversation_id/runes",
  followEvents: "/v1/conversations/:conversation_id/events",
  readBlob: "/v1/blobs/:sha256"
} as const

/** The addresses of a path with parameters. */
export const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replaceAll(".", "\\.").replace(/:\w+/g, "([^/]{1,80})").replace(/\*$/, ".*")}$`)
