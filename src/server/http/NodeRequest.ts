// A request of node:http as the router and its endpoints see it. Bodies are read up to a limit; what reads more fails with
// the error that a client is told. Uploads of forms and upgrades are not part of it.
import type { IncomingMessage } from "node:http"
import * as Effect from "effect/Effect"
import * as Cookies from "effect/http/Cookies"
import * as Headers from "effect/http/Headers"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import { HttpServerError, RequestParseError } from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type { MultipartError } from "effect/http/Multipart"
import * as UrlParams from "effect/http/UrlParams"
import * as Inspectable from "effect/Inspectable"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { limits } from "../../wire/WireLimits.ts"
import type { Principal } from "../operations/Context.ts"
import { readBytes } from "./HttpAnswer.ts"

type Changes = Parameters<HttpServerRequest.HttpServerRequest["modify"]>[0]

export interface Arrived {
  readonly source: IncomingMessage
  /** As the router takes it apart: path and query. */
  readonly url: string
  /** Whose token it has, if anybody's. */
  readonly principal: Principal | undefined
}

export class NodeRequest extends Inspectable.Class implements HttpServerRequest.HttpServerRequest {
  readonly [HttpServerRequest.TypeId] = HttpServerRequest.TypeId
  readonly [HttpIncomingMessage.TypeId] = HttpIncomingMessage.TypeId
  readonly source: IncomingMessage
  readonly url: string
  readonly principal: Principal | undefined
  readonly headers: Headers.Headers
  readonly remoteAddress: Option.Option<string>
  readonly protocol = "http"
  private bytes: Promise<Buffer> | undefined

  constructor({ principal, source, url }: Arrived, changes: Changes = {}) {
    super()
    this.source = source
    this.url = changes.url ?? url
    this.principal = principal
    this.headers = changes.headers ?? Headers.fromInput(source.headers as Headers.Input)
    this.remoteAddress = changes.remoteAddress ?? Option.fromNullishOr(source.socket.remoteAddress)
  }

  get method(): string {
    return this.source.method ?? "GET"
  }

  get originalUrl(): string {
    return this.source.url ?? "/"
  }

  get cookies() {
    return Cookies.parseHeader(this.headers["cookie"] ?? "")
  }

  get peerAddress(): Option.Option<string> {
    return this.remoteAddress
  }

  modify(changes: Changes): NodeRequest {
    return new NodeRequest(this, changes)
  }

  /** The whole body; read once, however often it is asked for. */
  private get body(): Effect.Effect<Buffer, HttpServerError> {
    return Effect.tryPromise({
      try: () => {
        this.bytes ??= readBytes(this.source, limits.messageBytesMax)
        return this.bytes
      },
      catch: (cause) => this.unreadable(cause)
    })
  }

  get arrayBuffer(): Effect.Effect<ArrayBuffer, HttpServerError> {
    return Effect.map(this.body, (bytes) => new Uint8Array(bytes).buffer)
  }

  get text(): Effect.Effect<string, HttpServerError> {
    return Effect.map(this.body, (bytes) => bytes.toString("utf8"))
  }

  get json(): Effect.Effect<Schema.Json, HttpServerError> {
    return Effect.flatMap(this.text, (text) =>
      Effect.try({ try: () => JSON.parse(text) as Schema.Json, catch: (cause) => this.unreadable(cause) })
    )
  }

  get urlParamsBody(): Effect.Effect<UrlParams.UrlParams, HttpServerError> {
    return Effect.map(this.text, (text) => UrlParams.fromInput(new URLSearchParams(text)))
  }

  get stream(): Stream.Stream<Uint8Array, HttpServerError> {
    return Stream.fromEffect(this.body)
  }

  get multipart(): Effect.Effect<never, MultipartError> {
    return Effect.die(new Error("forms with files are not supported"))
  }

  get multipartStream(): Stream.Stream<never, MultipartError> {
    return Stream.die(new Error("forms with files are not supported"))
  }

  get upgrade(): Effect.Effect<never, HttpServerError> {
    return Effect.fail(this.unreadable(new Error("only /ws is upgraded")))
  }

  upgradeWith(): Effect.Effect<never, HttpServerError> {
    return this.upgrade
  }

  toJSON(): unknown {
    return { _id: "HttpServerRequest", method: this.method, url: this.url }
  }

  private unreadable(cause: unknown): HttpServerError {
    return new HttpServerError({ reason: new RequestParseError({ request: this, cause }) })
  }
}
