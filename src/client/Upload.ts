/** Hands bytes to a server beside the WebSocket, whose messages have a limit. The same bytes twice are kept once. */
import type { WireError } from "../wire/Codes.ts"
import { NoServer, RequestFailed } from "./ClientErrors.ts"
import type { Endpoint } from "./Socket.ts"

/** Where the bytes are, and what they are. */
export interface Uploaded {
  readonly sha256: string
  readonly bytes: number
  readonly media_type?: string
}

/** The address of the server over HTTP, however it was written. */
const httpUrl = (url: string): URL => {
  const parsed = new URL("/v1/blobs", url)
  if (parsed.protocol === "ws:") parsed.protocol = "http:"
  if (parsed.protocol === "wss:") parsed.protocol = "https:"
  return parsed
}

export const upload = async ({ token, url }: Endpoint, bytes: Uint8Array): Promise<Uploaded> => {
  const body = new Uint8Array(bytes)
  const headers = {
    "content-type": "application/octet-stream",
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` })
  }
  const response = await fetch(httpUrl(url), { method: "POST", headers, body }).catch((cause: unknown) => {
    throw new NoServer(url, cause instanceof Error ? cause.message : String(cause))
  })
  const answer = (await response.json()) as Uploaded & { readonly error?: WireError }
  if (answer.error !== undefined) throw new RequestFailed("blob.upload", answer.error)
  return answer
}
