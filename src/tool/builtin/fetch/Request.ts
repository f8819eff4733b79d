// One request over a connection to an address that was checked: no cookies, no credentials, no proxy, no reuse. The body
// is unpacked as it comes and cut at a limit, so that nothing small can become something large.

import { type ClientRequest, type IncomingMessage, request as plain } from "node:http"
import { connect, type Socket } from "node:net"
import { connect as connectSecurely } from "node:tls"
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib"
import { after } from "../../../contract/Timers.ts"
import { FetchFailed, type Target } from "./Guard.ts"
import { fetchLimits } from "./Limits.ts"

/** Where a connection to a checked address goes in fact; somewhere else only in tests. */
export type Dial = (address: string, port: number) => { readonly host: string; readonly port: number }

export interface Page {
  readonly status: number
  readonly type: string
  /** Where it sends the reader instead. */
  readonly location: string | undefined
  readonly body: Buffer
  readonly isCut: boolean
}

export interface RequestOptions {
  readonly dial: Dial
  readonly userAgent: string
  readonly signal: AbortSignal
  /** Certificates to trust instead of the known ones. */
  readonly certificates?: string
}

const opened = (socket: Socket, event: "connect" | "secureConnect", signal: AbortSignal): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const cancel = after(fetchLimits.connectMs, () => fail(new FetchFailed("no connection in time")))
    const fail = (error: Error): void => {
      cancel()
      socket.destroy()
      reject(error)
    }
    const abort = (): void => fail(new FetchFailed("it was stopped"))
    signal.addEventListener("abort", abort, { once: true })
    if (signal.aborted) abort()
    socket.once("error", fail)
    socket.once(event, () => {
      cancel()
      signal.removeEventListener("abort", abort)
      socket.off("error", fail)
      resolve(socket)
    })
  })

const dialled = async (target: Target, address: string, options: RequestOptions): Promise<Socket> => {
  const socket = await opened(connect(options.dial(address, target.port)), "connect", options.signal)
  if (target.url.protocol === "http:") return socket
  const { certificates: ca } = options
  const secure = connectSecurely({
    socket,
    servername: target.url.hostname,
    ALPNProtocols: ["http/1.1"],
    ...(ca === undefined ? {} : { ca })
  })
  return opened(secure, "secureConnect", options.signal)
}

/** Connects to the first of the checked addresses that answers. */
const connected = async (target: Target, options: RequestOptions): Promise<Socket> => {
  let last: unknown
  for (const address of target.addresses) {
    try {
      return await dialled(target, address, options)
    } catch (error) {
      last = error
      if (options.signal.aborted) break
    }
  }
  throw new FetchFailed(`${target.url.hostname} does not answer: ${(last as Error).message}`)
}

const unpackers: Readonly<Record<string, () => NodeJS.ReadWriteStream>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress
}

const unpacked = (response: IncomingMessage): NodeJS.ReadableStream => {
  const coding = (response.headers["content-encoding"] ?? "").trim().toLowerCase()
  if (coding === "" || coding === "identity") return response
  const make = Object.hasOwn(unpackers, coding) ? unpackers[coding] : undefined
  if (make === undefined) throw new FetchFailed(`the page is packed in a way that is not known: ${coding.slice(0, 40)}`)
  const unpacker = make()
  response.on("error", (error) => unpacker.emit("error", error))
  return response.pipe(unpacker)
}

const read = async (response: IncomingMessage): Promise<Pick<Page, "body" | "isCut">> => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  for await (const chunk of unpacked(response) as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > fetchLimits.bodyBytesMax) break
  }
  const body = Buffer.concat(chunks)
  return { body: body.subarray(0, fetchLimits.bodyBytesMax), isCut: body.length > fetchLimits.bodyBytesMax }
}

const answered = (request: ClientRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request.once("response", resolve)
    request.once("error", reject)
    request.end()
  })

/** Fetches one page, without following where it may lead; throws FetchFailed. */
export const fetchPage = async (target: Target, options: RequestOptions): Promise<Page> => {
  const socket = await connected(target, options)
  const { host, pathname, search } = target.url
  const request = plain({
    createConnection: () => socket,
    method: "GET",
    path: `${pathname}${search}`,
    setHost: false,
    headers: {
      host,
      accept: "text/html, text/*, application/json, application/xml;q=0.9, */*;q=0.1",
      "accept-encoding": "gzip, br",
      "user-agent": options.userAgent,
      connection: "close"
    },
    signal: options.signal
  })
  try {
    const response = await answered(request)
    const { headers, statusCode: status = 0 } = response
    const isElsewhere = status >= 300 && status < 400 && headers.location !== undefined
    const type = (headers["content-type"] ?? "").slice(0, 200)
    if (isElsewhere) return { status, type, location: headers.location, body: Buffer.alloc(0), isCut: false }
    return { status, type, location: undefined, ...(await read(response)) }
  } catch (error) {
    if (error instanceof FetchFailed) throw error
    throw new FetchFailed(`${target.url.hostname}: ${(error as Error).message}`)
  } finally {
    request.destroy()
    socket.destroy()
  }
}
