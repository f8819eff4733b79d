// The router over the endpoints in `routed`: one effect from a request to its answer. Addresses are matched as they are
// written, with capitals, slashes and percent signs kept, and a parameter of a path has at most 80 characters.
import type { IncomingMessage } from "node:http"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Layer from "effect/Layer"
import type { Principal } from "../operations/Context.ts"
import { guards } from "./EndpointGuards.ts"
import { routed } from "./Endpoints.ts"
import { isPublicAt, methodsAt } from "./EndpointTable.ts"
import { type HttpOptions, HttpParts } from "./HttpParts.ts"
import { conversationHandlers } from "./handlers/conversations.ts"
import { accessHandlers, blobHandlers, serverHandlers } from "./handlers/server.ts"
import { NodeRequest } from "./NodeRequest.ts"
import { writeAnswer } from "./NodeResponse.ts"

const handlers = Layer.mergeAll(conversationHandlers, accessHandlers, blobHandlers, serverHandlers)

const exactly = { ignoreTrailingSlash: false, ignoreDuplicateSlashes: false, caseSensitive: true, maxParamLength: 80 }

/** What the router sees of an address: nothing in it is decoded, and of a repeated parameter the last one counts. */
const addressOf = ({ pathname, searchParams }: URL): string => {
  const path = pathname.replaceAll("%", "%25").replaceAll(";", "%3B")
  if (searchParams.size === 0) return path
  return `${path}?${new URLSearchParams(Object.fromEntries(searchParams))}`
}

export interface Asked {
  readonly request: IncomingMessage
  readonly url: URL
  readonly principal: Principal | undefined
}

/** The answer of an endpoint that is there; rejects with defects. */
export type Route = (asked: Asked) => Promise<HttpServerResponse>

type RouterServices = Layer.Success<typeof HttpServer.layerServices> | HttpRouter.HttpRouter

/** One function from a request to its answer, over these endpoints. */
export const routeOver = (endpoints: Layer.Layer<never, never, RouterServices>): Route => {
  const made = Effect.gen(function* () {
    const router = yield* HttpRouter.make
    const services = Layer.merge(HttpServer.layerServices, Layer.succeed(HttpRouter.HttpRouter, router))
    yield* Layer.build(Layer.provide(endpoints, services))
    return router.asHttpEffect()
  })
  const answer = Effect.runSync(made.pipe(Effect.scoped, Effect.provideService(HttpRouter.RouterConfig, exactly)))
  return ({ principal, request, url }) => {
    const arrived = new NodeRequest({ source: request, url: addressOf(url), principal })
    const answered = Effect.provideService(answer, HttpServerRequest.HttpServerRequest, arrived)
    return Effect.runPromise(Effect.scoped(answered))
  }
}

export interface Routes {
  readonly route: Route
  readonly methodsAt: typeof methodsAt
  readonly isPublicAt: typeof isPublicAt
  readonly writeAnswer: typeof writeAnswer
}

/** All endpoints behind the router. */
export const makeRoutes = (options: HttpOptions): Routes => ({
  methodsAt,
  isPublicAt,
  writeAnswer,
  route: routeOver(
    HttpApiBuilder.layer(routed).pipe(
      Layer.provide(handlers),
      Layer.provide(guards),
      HttpRouter.provideRequest(Layer.succeed(HttpParts, options))
    )
  )
})
