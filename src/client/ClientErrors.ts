/**
 * What can go wrong between a client and its server. Plain classes with a tag and fields: the client also runs where
 * nothing else of ours is loaded.
 */
import type { ErrorCode, WireError } from "../wire/Codes.ts"

/** The server answered with an error of the protocol. */
export class RequestFailed extends Error {
  readonly _tag = "RequestFailed"
  override readonly name = "RequestFailed"
  readonly op: string
  readonly code: ErrorCode
  readonly data: Readonly<Record<string, unknown>>

  constructor(op: string, error: WireError) {
    super(error.message)
    this.op = op
    this.code = error.code
    this.data = error.data ?? {}
  }
}

/** Nothing answers at the address, or nothing is known that would. */
export class NoServer extends Error {
  readonly _tag = "NoServer"
  override readonly name = "NoServer"
  readonly url: string

  constructor(url: string, reason: string) {
    super(reason)
    this.url = url
  }
}

/** The server does not know the token, or sent this client away for good. */
export class SentAway extends Error {
  readonly _tag = "SentAway"
  override readonly name = "SentAway"
  readonly closeCode: number

  constructor(closeCode: number, reason: string) {
    super(reason)
    this.closeCode = closeCode
  }
}

/** The client was closed while something still waited for it. */
export class ClientClosed extends Error {
  readonly _tag = "ClientClosed"
  override readonly name = "ClientClosed"

  constructor() {
    super("the client is closed")
  }
}

/** The connection ended before the answer came. Never leaves the client: what may be repeated is repeated. */
export class LinkLost extends Error {
  readonly _tag = "LinkLost"
  override readonly name = "LinkLost"
}
