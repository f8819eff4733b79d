// Who may come in. Tokens are compared in constant time and kept only as digests; a browser gets a ticket instead, good
// for one use and thirty seconds, and turns it into a session: a value signed with the digest of the token it came from,
// so that it survives a restart of the server and ends with its token. Host and Origin are checked before anything else, so that a page of
// somebody else's, or a name that was made to point here, is refused.
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import type { Role } from "../wire/Operations.ts"
import { limits } from "../wire/WireLimits.ts"
import type { Principal } from "./operations/Context.ts"

export interface NamedToken {
  readonly name: string
  readonly role: Role
  /** SHA-256 of the token. */
  readonly digest: Buffer
}

const digestOf = (secret: string): Buffer => createHash("sha256").update(secret).digest()

export const namedToken = (name: string, role: Role, secret: string): NamedToken => ({
  name,
  role,
  digest: digestOf(secret)
})

interface Ticket {
  readonly principal: Principal
  readonly expiresMs: number
}

export class Auth {
  private tokens: ReadonlyArray<NamedToken>
  private readonly nowMs: () => number
  private readonly tickets = new Map<string, Ticket>()

  constructor(tokens: ReadonlyArray<NamedToken>, nowMs: () => number) {
    this.tokens = tokens
    this.nowMs = nowMs
  }

  add(token: NamedToken): void {
    this.tokens = [...this.tokens, token]
  }

  remove(name: string): void {
    this.tokens = this.tokens.filter((token) => token.name !== name)
    for (const [key, { principal }] of this.tickets) if (principal.name === name) this.tickets.delete(key)
  }

  /** Whose token this is; every known token is compared, so the time tells nothing. */
  byToken(secret: string | undefined): Principal | undefined {
    if (secret === undefined || secret.length > 1024) return undefined
    const digest = digestOf(secret)
    let found: Principal | undefined
    for (const token of this.tokens) {
      if (timingSafeEqual(digest, token.digest)) found ??= { name: token.name, role: token.role }
    }
    return found
  }

  /** A ticket for one connection of this principal; the oldest go when there are too many. */
  issueTicket(principal: Principal): { readonly ticket: string; readonly expires_ms: number } {
    this.forgetExpired()
    if (this.tickets.size >= limits.ticketsMax) this.tickets.delete(this.tickets.keys().next().value ?? "")
    const ticket = randomBytes(32).toString("base64url")
    const expiresMs = this.nowMs() + limits.ticketValidMs
    this.tickets.set(digestOf(ticket).toString("hex"), { principal, expiresMs })
    return { ticket, expires_ms: expiresMs }
  }

  /** Uses up a ticket. */
  byTicket(ticket: string | undefined): Principal | undefined {
    if (ticket === undefined || ticket.length > 1024) return undefined
    const key = digestOf(ticket).toString("hex")
    const known = this.tickets.get(key)
    this.tickets.delete(key)
    return known !== undefined && known.expiresMs > this.nowMs() ? known.principal : undefined
  }

  /** What a browser keeps in a cookie to be this principal; nothing where the principal has no token any more. */
  issueSession(principal: Principal): { readonly session: string; readonly expires_ms: number } | undefined {
    const token = this.tokens.find(({ name }) => name === principal.name)
    if (token === undefined) return undefined
    const expiresMs = this.nowMs() + limits.sessionValidMs
    const body = `${Buffer.from(token.name).toString("base64url")}.${expiresMs}.${randomBytes(9).toString("base64url")}`
    return { session: `${body}.${signatureOf(token, body).toString("base64url")}`, expires_ms: expiresMs }
  }

  bySession(session: string | undefined): Principal | undefined {
    if (session === undefined || session.length > 1024) return undefined
    const at = session.lastIndexOf(".")
    const body = session.slice(0, Math.max(0, at))
    const signature = Buffer.from(session.slice(at + 1), "base64url")
    const [name = "", expires = ""] = body.split(".")
    if (!(Number(expires) > this.nowMs())) return undefined
    const named = Buffer.from(name, "base64url").toString()
    const signed = this.tokens.find((token) => token.name === named && isSignature(signature, signatureOf(token, body)))
    return signed === undefined ? undefined : { name: signed.name, role: signed.role }
  }

  private forgetExpired(): void {
    const nowMs = this.nowMs()
    // All are valid for the same time, so the oldest come first.
    for (const [key, { expiresMs }] of this.tickets) {
      if (expiresMs > nowMs) return
      this.tickets.delete(key)
    }
  }
}

const signatureOf = ({ digest }: NamedToken, body: string): Buffer =>
  createHmac("sha256", digest).update(`echs session ${body}`).digest()

const isSignature = (given: Buffer, expected: Buffer): boolean =>
  given.length === expected.length && timingSafeEqual(given, expected)

export const bearerOf = (header: string | undefined): string | undefined => {
  const match = header === undefined ? null : /^Bearer +([^\s]+)$/i.exec(header)
  return match?.[1]
}

const loopbackNames: ReadonlyArray<string> = ["localhost", "127.0.0.1", "[::1]"]

/** The names under which this server may be addressed, with its port. */
export const allowedHosts = (host: string, port: number, extra: ReadonlyArray<string> = []): ReadonlySet<string> => {
  const bound = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host
  return new Set(
    [...loopbackNames, bound, ...extra].flatMap((name) => [
      `${name}:${port}`.toLowerCase(),
      ...(port === 80 ? [name] : [])
    ])
  )
}

export type RequestVerdict = "welcome" | "wrong_host" | "wrong_origin"

/** `Host` must name this server; `Origin` must be absent, as from a program, this server's own, or one that was named. */
export const checkRequest = (
  headers: { readonly host?: string | undefined; readonly origin?: string | undefined },
  hosts: ReadonlySet<string>,
  origins: ReadonlySet<string> = new Set()
): RequestVerdict => {
  const host = headers.host?.toLowerCase()
  if (host === undefined || !hosts.has(host)) return "wrong_host"
  const origin = headers.origin?.toLowerCase()
  if (origin === undefined) return "welcome"
  const isOwn = origin === `http://${host}` || origin === `https://${host}`
  return isOwn || origins.has(origin) ? "welcome" : "wrong_origin"
}
