// Goal: an endpoint added as CONTRIBUTING says has its token checked, its input checked, and its failures told, without a
// line of its own about it. Method: a toy endpoint behind the router, on a real node:http server, asked with fetch.
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { afterEach, describe, expect, it } from "vitest"
import { Authorization, CurrentPrincipal, guards, WireErrors } from "#src/server/http/EndpointGuards.ts"
import { urlOf } from "#src/server/http/HttpAnswer.ts"
import { writeAnswer } from "#src/server/http/NodeResponse.ts"
import { routeOver } from "#src/server/http/Router.ts"
import { NotFound, ServerBusy } from "#src/server/operations/OperationErrors.ts"
import { limits } from "#src/wire/WireLimits.ts"

const greetings = HttpApiGroup.make("greetings").add(
  HttpApiEndpoint.post("greet", "/v1/greetings/:name", {
    params: { name: Schema.String },
    query: { times: Schema.optionalKey(Schema.FiniteFromString) },
    payload: Schema.Struct({ loud: Schema.Boolean }),
    success: Schema.Struct({ text: Schema.String })
  }),
  HttpApiEndpoint.get("stream", "/v1/greetings", { success: Schema.String }),
  HttpApiEndpoint.get("fail", "/v1/failures/:how", { params: { how: Schema.String } })
)

const toy = HttpApi.make("toy").add(greetings).middleware(Authorization).middleware(WireErrors)

const pieces = Stream.make("hello, ", "world").pipe(Stream.encodeText)

const toyHandlers = HttpApiBuilder.group(toy, "greetings", (handlers) =>
  handlers
    .handle("greet", ({ params, payload, query }) =>
      Effect.gen(function* () {
        const { name } = yield* CurrentPrincipal
        const text = `${`hello, ${params.name} `.repeat(query.times ?? 1)}from ${name}`
        return { text: payload.loud ? text.toUpperCase() : text }
      })
    )
    .handle("stream", () =>
      Effect.succeed(
        HttpServerResponse.stream(pieces, {
          contentType: "text/plain",
          headers: { "cache-control": "max-age=60" }
        }).pipe(HttpServerResponse.setCookieUnsafe("seen", "yes", { httpOnly: true, sameSite: "strict" }))
      )
    )
    .handle("fail", ({ params: { how } }) => {
      if (how === "missing") return Effect.fail(new NotFound("there is none"))
      if (how === "busy") return Effect.fail(new ServerBusy("later", { retry_after_ms: 1_500 }))
      return Effect.die(new Error("a bug"))
    })
)

const route = routeOver(HttpApiBuilder.layer(toy).pipe(Layer.provide(toyHandlers), Layer.provide(guards)))

let close = (): void => undefined
afterEach(() => close())

const serve = async (): Promise<(path: string, options?: RequestInit) => Promise<Response>> => {
  const server = createServer((request, response) => {
    const principal = request.headers.authorization === undefined ? undefined : { name: "ada", role: "admin" as const }
    route({ request, url: urlOf(request), principal }).then(
      (answer) => writeAnswer(response, answer),
      () => response.writeHead(500).end()
    )
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  close = () => {
    server.close()
    server.closeAllConnections()
  }
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return (path, options = {}) => fetch(`${base}${path}`, { headers: { authorization: "Bearer x" }, ...options })
}

const asJson = { authorization: "Bearer x", "content-type": "application/json" }
const post = (body: string, headers: Record<string, string> = asJson) => ({ method: "POST", headers, body })

describe("an endpoint", () => {
  it("gets its path, query, body and principal checked and typed", async () => {
    const ask = await serve()
    const answer = await ask("/v1/greetings/Bob?times=2", post('{"loud":true}'))
    expect([answer.status, await answer.json()]).toEqual([200, { text: "HELLO, BOB HELLO, BOB FROM ADA" }])
    expect(answer.headers.get("content-security-policy")).toBe("default-src 'none'; frame-ancestors 'none'")
  })

  it.each([
    ["a field of the wrong type", "/v1/greetings/Bob", post('{"loud":1}'), /loud/],
    ["a query of the wrong type", "/v1/greetings/Bob?times=x", post('{"loud":true}'), /times/],
    ["a body that is no JSON", "/v1/greetings/Bob", post("{"), /JSON/],
    ["another content type", "/v1/greetings/Bob", post("x", { ...asJson, "content-type": "text/html" }), /content type/]
  ])("refuses %s with bad_request", async (_, path, options, reason) => {
    const ask = await serve()
    const answer = await ask(path, options)
    const { error } = (await answer.json()) as { readonly error: { readonly code: string; readonly message: string } }
    expect([answer.status, error.code]).toEqual([400, "bad_request"])
    expect(error.message).toMatch(reason)
  })

  it("refuses a body over the limit with limit_exceeded", async () => {
    const ask = await serve()
    const answer = await ask("/v1/greetings/Bob", post(`"${"x".repeat(limits.messageBytesMax)}"`))
    expect([answer.status, await answer.json()]).toMatchObject([429, { error: { code: "limit_exceeded" } }])
  })

  it("refuses a request without a token, and does not run its handler", async () => {
    const ask = await serve()
    const answer = await ask("/v1/greetings/Bob", post('{"loud":true}', { "content-type": "application/json" }))
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, "Bearer"])
    expect(await answer.json()).toEqual({ error: { code: "unauthorized", message: "the token is missing or wrong" } })
  })

  it("tells a failure by the code on its class, and nothing of a defect", async () => {
    const ask = await serve()
    const missing = await ask("/v1/failures/missing")
    expect([missing.status, await missing.json()]).toEqual([
      404,
      { error: { code: "not_found", message: "there is none" } }
    ])
    const busy = await ask("/v1/failures/busy")
    expect([busy.status, busy.headers.get("retry-after")]).toEqual([503, "2"])
    expect((await ask("/v1/failures/bug")).status).toBe(500)
  })

  it("streams a body, sets a cookie, and chooses a header that all answers have", async () => {
    const ask = await serve()
    const answer = await ask("/v1/greetings")
    expect(await answer.text()).toBe("hello, world")
    expect(answer.headers.get("set-cookie")).toBe("seen=yes; HttpOnly; SameSite=Strict")
    expect(answer.headers.get("cache-control")).toBe("max-age=60")
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff")
  })
})
