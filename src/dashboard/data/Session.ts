// The session of this browser with its server. A ticket in the address is traded for a cookie that scripts cannot read,
// and is gone from the address before anything else happens; the token itself is never in an address and never kept.

const address = "/v1/session"

export type SignIn = { readonly _tag: "SignedIn" } | { readonly _tag: "Refused"; readonly message: string }

const begin = async (init: RequestInit): Promise<SignIn> => {
  const response = await fetch(address, { method: "POST", ...init }).catch(() => undefined)
  if (response === undefined) return { _tag: "Refused", message: "the server does not answer" }
  if (response.ok) return { _tag: "SignedIn" }
  const body = (await response.json().catch(() => undefined)) as { error?: { message?: string } } | undefined
  return { _tag: "Refused", message: body?.error?.message ?? `the server answered ${response.status}` }
}

export const signInWithToken = (token: string): Promise<SignIn> =>
  begin({ headers: { authorization: `Bearer ${token}` } })

/** Prolongs the session there is. */
export const renewSession = (): Promise<SignIn> => begin({})

export const signOut = async (): Promise<void> => {
  await fetch(address, { method: "DELETE" })
}

/** Uses the ticket in the address, where there is one; what it refused is told on the page. */
export const takeTicket = async (): Promise<SignIn | undefined> => {
  const fields = new URLSearchParams(location.hash.slice(1))
  const ticket = fields.get("ticket")
  if (ticket === null) return undefined
  const to = fields.get("to") ?? "/inbox"
  history.replaceState(null, "", `#${to.startsWith("/") ? to : "/inbox"}`)
  return begin({ body: JSON.stringify({ ticket }) })
}
