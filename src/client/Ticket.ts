/** Asks for a ticket beside the WebSocket: what a browser shows once in place of the token, to begin a session. */
import type { WireError } from "../wire/Codes.ts"
import { NoServer, RequestFailed } from "./ClientErrors.ts"
import { type Endpoint, httpUrl } from "./Socket.ts"

export interface Ticket {
  readonly ticket: string
  readonly expires_ms: number
}

export const requestTicket = async ({ token, url }: Endpoint): Promise<Ticket> => {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const response = await fetch(httpUrl(url, "/v1/tickets"), { method: "POST", headers }).catch((cause: unknown) => {
    throw new NoServer(url, cause instanceof Error ? cause.message : String(cause))
  })
  const answer = (await response.json()) as Ticket & { readonly error?: WireError }
  if (answer.error !== undefined) throw new RequestFailed("ticket", answer.error)
  return answer
}
