// The OpenAPI document of all endpoints, as `GET /openapi.json` and schemas/openapi.json show it. Requests are closed: a
// field that is not named is refused. Answers are open: they may grow, and readers ignore what they do not know.
import * as OpenApi from "effect/http-api/OpenApi"
import { everyEndpoint } from "./Endpoints.ts"

const opened = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(opened)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).filter(([key, one]) => key !== "additionalProperties" || one !== false)
  return Object.fromEntries(entries.map(([key, one]) => [key, opened(one)]))
}

/** A document whose object under this key, wherever it is, is open. */
const openedUnder = (isAnswer: (key: string) => boolean, value: unknown): unknown => {
  if (Array.isArray(value)) return value.map((one) => openedUnder(isAnswer, one))
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value)
  return Object.fromEntries(
    entries.map(([key, one]) => [key, isAnswer(key) ? opened(one) : openedUnder(isAnswer, one)])
  )
}

const isAnswer = (key: string): boolean => key === "responses" || /^Error\d{3}$/.test(key)

/** Groups that are documented together share a tag. */
const withTagsOnce = <D extends { readonly tags: ReadonlyArray<{ readonly name: string }> }>(document: D): D => ({
  ...document,
  tags: document.tags.filter(({ name }, at, all) => all.findIndex((tag) => tag.name === name) === at)
})

export const openApiDocument = (): unknown => openedUnder(isAnswer, withTagsOnce(OpenApi.fromApi(everyEndpoint)))
