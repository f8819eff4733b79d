// Where the endpoints are, as data derived from their definitions: which methods an address takes, and whether it answers
// without a token.
import * as HttpApi from "effect/http-api/HttpApi"
import { patternOf } from "./DirectPaths.ts"
import { Authorization } from "./EndpointGuards.ts"
import { everyEndpoint } from "./Endpoints.ts"

export interface EndpointRow {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly isPublic: boolean
}

const readRows = (): ReadonlyArray<EndpointRow> => {
  const rows: Array<EndpointRow> = []
  HttpApi.reflect(everyEndpoint, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint: { identifier: name, method, path }, middleware }) =>
      void rows.push({ name, method, path, isPublic: ![...middleware].some(({ key }) => key === Authorization.key) })
  })
  return rows
}

export const endpointRows: ReadonlyArray<EndpointRow> = readRows()

const patterns = endpointRows.map((row) => ({ ...row, pattern: patternOf(row.path) }))

export const methodsAt = (pathname: string): ReadonlyArray<string> =>
  patterns.filter(({ pattern }) => pattern.test(pathname)).map(({ method }) => method)

const publicPatterns = patterns.filter(({ isPublic }) => isPublic).map(({ pattern }) => pattern)

export const isPublicAt = (pathname: string): boolean => publicPatterns.some((pattern) => pattern.test(pathname))
