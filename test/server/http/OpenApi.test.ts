// Goal: the OpenAPI document describes the server that answers. Method: the real server; every path of the document is
// asked for, and answers are validated by an independent validator against the schema that the document has for them.
import { readFileSync } from "node:fs"
import { Ajv2020 } from "ajv/dist/2020.js"
import { describe, expect, it } from "vitest"
import { endpointRows } from "#src/server/http/EndpointTable.ts"
import { type TestServer, useServers } from "../../support/server/TestServer.ts"

const { open } = useServers()

interface Operation {
  readonly operationId: string
  readonly security: ReadonlyArray<unknown>
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: object }>> }>
  >
}

interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}

const committed = JSON.parse(
  readFileSync(new URL("../../../schemas/openapi.json", import.meta.url), "utf8")
) as OpenApiDocument

const described = Object.entries(committed.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation }))
)

const ask = (server: TestServer, method: string, path: string, options: RequestInit = {}) =>
  fetch(`${server.url}${path.replace(/\{\w+\}/g, "conv_00000000")}`, {
    method,
    ...options,
    headers: { authorization: `Bearer ${server.token}`, ...(options.headers as Record<string, string> | undefined) }
  })

/** Whether a body is what the document says of an answer with this status. */
const issueOf = (path: string, method: string, status: number, body: unknown): string | undefined => {
  const schema = committed.paths[path]?.[method]?.responses[String(status)]?.content?.["application/json"]?.schema
  if (schema === undefined) return `the document has no answer with ${status}`
  const text = JSON.stringify({ ...schema, $defs: committed.components.schemas })
  const validate = new Ajv2020({ strict: false }).compile(
    JSON.parse(text.replaceAll("#/components/schemas/", "#/$defs/")) as object
  )
  return validate(body) ? undefined : JSON.stringify(validate.errors)
}

describe("the OpenAPI document", () => {
  it("is served as it is committed", async () => {
    const server = await open()
    expect(await (await ask(server, "GET", "/openapi.json")).json()).toEqual(committed)
  })

  it("has every endpoint, and every endpoint in it is there", async () => {
    const pathOf = (path: string): string => path.replace(/:(\w+)/g, "{$1}")
    const rows = endpointRows.map(({ method, path }) => `${method} ${pathOf(path)}`)
    expect(described.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([...rows].sort())
    const server = await open()
    for (const { method, path } of described) {
      const answer = await ask(server, method, path)
      await answer.body?.cancel()
      expect(answer.status, `${method} ${path}`).not.toBe(405)
      if (!path.includes("{")) expect(answer.status, `${method} ${path}`).not.toBe(404)
    }
  })

  it("asks for a token wherever the server does", async () => {
    const server = await open()
    for (const { method, operation, path } of described) {
      const { status } = await ask(server, method, path, { headers: { authorization: "" } })
      expect(status === 401, `${method} ${path}`).toBe(operation.security.length > 0)
    }
    expect(endpointRows.filter(({ isPublic }) => isPublic).map(({ path }) => path)).toEqual(["/healthz"])
  })

  it("describes the answers that are given, errors included", async () => {
    const server = await open()
    const json = { headers: { "content-type": "application/json" } }
    const created = await ask(server, "POST", "/v1/conversations", { ...json, body: '{"title":"x"}' })
    const body = (await created.json()) as { readonly conversation_id: string }
    expect([created.status, issueOf("/v1/conversations", "post", 201, body)]).toEqual([201, undefined])
    const here = "/v1/conversations/{conversation_id}"
    const rpc = { ...json, body: JSON.stringify({ id: "1", op: "conversation.get", ...body }) }
    const asked: ReadonlyArray<readonly [string, string, string, RequestInit?]> = [
      ["/healthz", "GET", "/healthz"],
      ["/v1/conversations", "GET", "/v1/conversations"],
      ["/v1/conversations", "GET", "/v1/conversations?limit=x"],
      ["/v1/conversations", "POST", "/v1/conversations", { ...json, body: "{" }],
      [here, "GET", `/v1/conversations/${body.conversation_id}`],
      [here, "GET", "/v1/conversations/conv_00000000"],
      ["/v1/tickets", "POST", "/v1/tickets"],
      ["/v1/tickets", "POST", "/v1/tickets", { headers: { authorization: "" } }],
      ["/v1/blobs", "POST", "/v1/blobs", { body: "some text" }],
      ["/v1/rpc", "POST", "/v1/rpc", { ...json, body: JSON.stringify({ id: "1", op: "stats" }) }],
      ["/v1/rpc", "POST", "/v1/rpc", rpc]
    ]
    for (const [path, method, address, options] of asked) {
      const answer = await ask(server, method, address, options)
      const told = `${method} ${address} ${answer.status}`
      expect(issueOf(path, method.toLowerCase(), answer.status, await answer.json()), told).toBeUndefined()
    }
  })
})
