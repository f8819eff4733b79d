/** Hands bytes to a server beside the WebSocket, whose messages have a limit. The same bytes twice are kept once. */
import type { WireError } from "../wire/Codes.ts"
import { NoServer, RequestFailed } from "./ClientErrors.ts"
import { type Endpoint, httpUrl } from "./Socket.ts"

/** Where the bytes are, and what they are. */
export interface Uploaded {
  readonly sha256: string
  readonly bytes: number
  readonly media_type?: string
}

export const upload = async ({ token, url }: Endpoint, bytes: Uint8Array): Promise<Uploaded> => {
  const body = new Uint8Array(bytes)
  const headers = {
    "content-type": "application/octet-stream",
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` })
  }
  const response = await fetch(httpUrl(url, "/v1/blobs"), { method: "POST", headers, body }).catch((cause: unknown) => {
    throw new NoServer(url, cause instanceof Error ? cause.message : String(cause))
  })
  const answer = (await response.json()) as Uploaded & { readonly error?: WireError }
  if (answer.error !== undefined) throw new RequestFailed("blob.upload", answer.error)
  return answer
}
