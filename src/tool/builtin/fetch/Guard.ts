// What may be fetched: the address of a page is taken apart, its host is looked up once, and every address it has must
// be out on the open Internet. The connection is made to an address that was checked here, and to no other.
import { lookup } from "node:dns/promises"
import { isIP } from "node:net"
import { addressIssue } from "./Address.ts"
import { fetchLimits, portsServed } from "./Limits.ts"

/** The addresses a name has, as the system finds them. */
export type Resolve = (host: string) => Promise<ReadonlyArray<string>>

export const resolveBySystem: Resolve = async (host) =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address)

/** A page may not be fetched, whatever was allowed. */
export class FetchRefused extends Error {
  override readonly name = "FetchRefused"
}

/** A host could not be found or did not answer. */
export class FetchFailed extends Error {
  override readonly name = "FetchFailed"
}

export interface Target {
  readonly url: URL
  readonly port: number
  /** Checked; what is connected to is one of these. */
  readonly addresses: ReadonlyArray<string>
}

const defaultPorts: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 }

/** Names that mean a machine nearby, whatever they resolve to. */
const isLocalName = (host: string): boolean =>
  !host.includes(".") || /(^|\.)(localhost|local|internal|intranet|lan|home|corp|localdomain|home\.arpa)$/.test(host)

/** The host as it was written, before a parser made sense of it. */
const writtenHost = (text: string): string => {
  const rest = text.slice(text.indexOf(":") + 1).replace(/^[\\/]*/, "")
  const authority = rest.split(/[\\/?#]/, 1)[0] ?? ""
  return authority.slice(authority.lastIndexOf("@") + 1).replace(/:\d*$/, "")
}

const parse = (text: string): URL => {
  if (text.length > fetchLimits.urlCharsMax) throw new FetchRefused("the address is too long")
  if (/[\s\p{C}]/u.test(text)) throw new FetchRefused("the address has blanks or characters that cannot be seen")
  if (!URL.canParse(text)) throw new FetchRefused("this is no address")
  return new URL(text)
}

/** The parts of an address that can be judged without looking anything up. */
const judge = (url: URL, text: string): number => {
  const { hostname, password, protocol, username } = url
  const usual = Object.hasOwn(defaultPorts, protocol) ? defaultPorts[protocol] : undefined
  if (usual === undefined) throw new FetchRefused(`only http and https are fetched, not ${protocol}`)
  if (username !== "" || password !== "") throw new FetchRefused("the address has a name or a password in it")
  const port = url.port === "" ? usual : Number(url.port)
  if (!portsServed.has(port)) throw new FetchRefused(`port ${port} is none that pages are fetched from`)
  const isOdd = isIP(hostname) === 4 && writtenHost(text) !== hostname
  if (isOdd) throw new FetchRefused(`the host is the address ${hostname} in another form`)
  return port
}

const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "")

const resolved = async (host: string, resolve: Resolve): Promise<ReadonlyArray<string>> => {
  if (isIP(host) !== 0) return [host]
  if (isLocalName(host)) throw new FetchRefused(`${host} is a name of a machine nearby`)
  let found: ReadonlyArray<string>
  try {
    found = await resolve(host)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new FetchFailed(`${host} cannot be found${code === undefined ? "" : ` (${code})`}`)
  }
  if (found.length === 0) throw new FetchFailed(`${host} has no address`)
  return found
}

/** The page that an address means, with where to find it; throws FetchRefused or FetchFailed. */
export const targetOf = async (text: string, resolve: Resolve): Promise<Target> => {
  const url = parse(text)
  const port = judge(url, text)
  const host = bare(url.hostname)
  const addresses = await resolved(host, resolve)
  // One closed address among open ones would be taken the next time.
  for (const address of addresses) {
    const issue = addressIssue(address)
    if (issue === undefined) continue
    throw new FetchRefused(host === address ? `${host} is ${issue}` : `${host} is at ${address}, which is ${issue}`)
  }
  return { url, port, addresses: addresses.slice(0, fetchLimits.addressesMax) }
}
