/** The WebSocket a client speaks through: the one of the browser, or of Node, which has the same one. */

export interface SocketLike {
  send(text: string): void
  close(code?: number, reason?: string): void
  addEventListener(type: "open" | "error", listener: () => void): void
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void
  addEventListener(type: "close", listener: (event: { readonly code: number; readonly reason: string }) => void): void
}

export type OpenSocket = (url: string) => SocketLike

export const openGlobalSocket: OpenSocket = (url) => new WebSocket(url)

/** Where the server is and what opens it. Asked for again before every connection, since a restart may move it. */
export interface Endpoint {
  readonly url: string
  readonly token?: string
  /** For one connection of a browser, in place of the token. */
  readonly ticket?: string
}

/** `http://host:port` as people and server.json write it, or a full WebSocket address. */
export const socketUrl = (url: string): string => {
  const parsed = new URL(url)
  if (parsed.protocol === "http:") parsed.protocol = "ws:"
  if (parsed.protocol === "https:") parsed.protocol = "wss:"
  if (parsed.pathname === "/" || parsed.pathname === "") parsed.pathname = "/ws"
  return parsed.href
}

/** An address of the same server over HTTP, however it was written. */
export const httpUrl = (url: string, path: string): URL => {
  const parsed = new URL(path, url)
  if (parsed.protocol === "ws:") parsed.protocol = "http:"
  if (parsed.protocol === "wss:") parsed.protocol = "https:"
  return parsed
}
