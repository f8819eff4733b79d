// The page in the browser: its files, and the session of whoever looks at it. The files are open to everybody and say
// nothing about anybody; a session is a cookie that scripts cannot read and that other sites cannot use.
import type { IncomingMessage, ServerResponse } from "node:http"
import { limits } from "../../wire/WireLimits.ts"
import type { Auth } from "../Auth.ts"
import type { Principal } from "../operations/Context.ts"
import { BadRequest, Unauthorized } from "../operations/OperationErrors.ts"
import { parseObject } from "../operations/Requests.ts"
import { answerJson, plainHeaders, readBytes } from "./HttpAnswer.ts"

export type PageEncoding = "br" | "gzip"

export interface PageFile {
  readonly type: string
  /** Its name changes with its content, so a browser may keep it. */
  readonly isImmutable: boolean
  readonly bytes: Buffer
  readonly compressed: Readonly<Record<PageEncoding, Buffer>>
}

export interface PageFiles {
  /** Undefined where there is no such file; rejects where the page cannot be built. */
  readonly file: (path: string) => Promise<PageFile | undefined>
}

/** Nothing from elsewhere, no inline script or style, and no text that becomes HTML. */
const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' blob:",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'"
].join("; ")

const pageHeaders = {
  ...plainHeaders,
  "content-security-policy": pagePolicy,
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()"
} as const

const encodingOf = ({ headers }: IncomingMessage): PageEncoding | undefined => {
  const accepted = String(headers["accept-encoding"] ?? "")
  return /\bbr\b/.test(accepted) ? "br" : /\bgzip\b/.test(accepted) ? "gzip" : undefined
}

export const sessionPath = "/v1/session"

export const isPagePath = (path: string): boolean => path === "/" || path.startsWith("/page/")

/** Answers with a file of the page; false where there is none. */
export const sendPageFile = async (
  files: PageFiles,
  path: string,
  request: IncomingMessage,
  response: ServerResponse
): Promise<boolean> => {
  const file = await files.file(path)
  if (file === undefined) return false
  const encoding = encodingOf(request)
  const bytes = encoding === undefined ? file.bytes : file.compressed[encoding]
  response.writeHead(200, {
    ...pageHeaders,
    "content-type": file.type,
    "content-length": bytes.length,
    vary: "accept-encoding",
    ...(encoding === undefined ? {} : { "content-encoding": encoding }),
    "cache-control": file.isImmutable ? "public, max-age=31536000, immutable" : "no-cache"
  })
  response.end(request.method === "HEAD" ? undefined : bytes)
  return true
}

/** Cookies do not tell ports apart: each server has a name of its own. */
const cookieName = ({ socket }: IncomingMessage): string => `echs_session_${socket.localPort ?? 0}`

const cookieOf = (request: IncomingMessage): string | undefined => {
  const name = cookieName(request)
  for (const pair of (request.headers.cookie ?? "").split(";")) {
    const at = pair.indexOf("=")
    if (pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim()
  }
  return undefined
}

/** The request comes from this server's own page: other ports of the same machine share its cookies. */
const isOwnPage = ({ headers }: IncomingMessage): boolean => {
  const { host, origin } = headers
  if (origin !== undefined) return origin === `http://${host}` || origin === `https://${host}`
  return headers["sec-fetch-site"] === "same-origin"
}

export const principalOfCookie = (auth: Auth, request: IncomingMessage): Principal | undefined =>
  isOwnPage(request) ? auth.bySession(cookieOf(request)) : undefined

const setCookie = (request: IncomingMessage, response: ServerResponse, value: string, seconds: number): void => {
  const isSecure = request.headers.origin?.startsWith("https://") === true
  const flags = `Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}${isSecure ? "; Secure" : ""}`
  response.setHeader("set-cookie", `${cookieName(request)}=${value}; ${flags}`)
}

const ticketIn = async (request: IncomingMessage): Promise<string | undefined> => {
  const bytes = await readBytes(request, limits.helloBytesMax)
  if (bytes.length === 0) return undefined
  const value = parseObject(bytes.toString("utf8"))
  if (typeof value === "string") throw new BadRequest(value)
  const { ticket } = value
  if (ticket !== undefined && typeof ticket !== "string") throw new BadRequest("the ticket must be a text")
  return ticket
}

/** Begins a session with a ticket or a token, or renews the one there is. */
export const beginSession = async (
  auth: Auth,
  known: Principal | undefined,
  request: IncomingMessage,
  response: ServerResponse
): Promise<void> => {
  const principal = auth.byTicket(await ticketIn(request)) ?? known
  const issued = principal === undefined ? undefined : auth.issueSession(principal)
  if (principal === undefined || issued === undefined)
    throw new Unauthorized('the ticket was used or has expired: run "echs open" again')
  setCookie(request, response, issued.session, Math.floor(limits.sessionValidMs / 1000))
  answerJson(response, 200, { principal: principal.name, role: principal.role, expires_ms: issued.expires_ms })
}

export const endSession = (request: IncomingMessage, response: ServerResponse): void => {
  setCookie(request, response, "", 0)
  answerJson(response, 200, {})
}
