// The one connection of the page. Everything the page knows comes through it, and everything it changes goes through it;
// it comes back by itself, and what was asked for meanwhile is asked once.
import { signal } from "@preact/signals"
import { Client, type ConnectionChange, RequestFailed, SentAway, type Welcome } from "../../client/Client.ts"

export type Role = "viewer" | "operator" | "admin"

export type ConnectionState =
  | { readonly _tag: "Connecting" }
  | { readonly _tag: "Online"; readonly welcome: Welcome }
  | { readonly _tag: "Lost"; readonly sinceMs: number; readonly reason: string }
  | { readonly _tag: "SignedOut"; readonly message?: string }

export const connection = signal<ConnectionState>({ _tag: "Connecting" })
export const role = signal<Role>("viewer")
export const principal = signal("")
/** When the last durable rune or change came. */
export const lastHeardMs = signal(0)

export const mayOperate = (): boolean => role.value !== "viewer"

let current: Client | undefined

export const client = (): Client => {
  if (current === undefined) throw new Error("the page is not connected yet")
  return current
}

const changed = (change: ConnectionChange): void => {
  if (change.type === "lost") {
    const sinceMs = connection.value._tag === "Lost" ? connection.value.sinceMs : Date.now()
    connection.value = { _tag: "Lost", sinceMs, reason: change.reason }
    return
  }
  const { welcome } = change
  role.value = welcome.role ?? "viewer"
  principal.value = welcome.principal
  connection.value = { _tag: "Online", welcome }
}

/** Connects; `onOnline` runs once, when the server has said welcome. */
export const connect = async (onOnline: (client: Client) => void): Promise<void> => {
  connection.value = { _tag: "Connecting" }
  try {
    current = await Client.connect({
      endpoint: { url: location.origin },
      client: { name: "echs page", version: "1" },
      isPatient: true,
      onConnection: changed
    })
    onOnline(current)
  } catch (error) {
    if (!(error instanceof SentAway)) throw error
    connection.value = { _tag: "SignedOut" }
  }
}

/** What went wrong, in words for people; a server that ends the session is told on the whole page. */
export const failureText = (error: unknown): string => {
  if (error instanceof SentAway) {
    connection.value = { _tag: "SignedOut", message: error.message }
    return error.message
  }
  if (error instanceof RequestFailed) return error.message
  return error instanceof Error ? error.message : String(error)
}

export const failureCode = (error: unknown): string => (error instanceof RequestFailed ? error.code : "")
