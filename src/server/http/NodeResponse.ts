// Writes an answer of the router to node:http, with the headers that every answer has unless its handler chose another
// value: first those of the handler, then those of all, then the length and the type of the body.
import type { ServerResponse } from "node:http"
import { pipeline } from "node:stream/promises"
import * as Cookies from "effect/http/Cookies"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Stream from "effect/Stream"
import { plainHeaders } from "./HttpAnswer.ts"

const headersOf = ({ body, cookies, headers }: HttpServerResponse): Record<string, string | Array<string>> => {
  const { "content-length": length, "content-type": type, ...chosen } = headers
  const setCookies = Cookies.toSetCookieHeaders(cookies)
  const bytes = body._tag === "Empty" ? undefined : body.contentLength?.toString()
  return {
    ...chosen,
    ...Object.fromEntries(Object.entries(plainHeaders).filter(([name]) => !(name in chosen))),
    ...(setCookies.length === 0 ? {} : { "set-cookie": setCookies }),
    ...(type === undefined ? {} : { "content-type": type }),
    ...((length ?? bytes) === undefined ? {} : { "content-length": length ?? (bytes as string) })
  }
}

/** Resolves when all of it is handed to the socket; a body that fails half-way destroys the response. */
export const writeAnswer = async (response: ServerResponse, answer: HttpServerResponse): Promise<void> => {
  const { body, status } = answer
  if (body._tag === "Raw" || body._tag === "FormData") throw new Error(`a body of the kind ${body._tag} cannot be sent`)
  response.writeHead(status, headersOf(answer))
  if (body._tag === "Uint8Array") response.end(body.body)
  else if (body._tag === "Stream") await pipeline(Stream.toAsyncIterable(body.stream), response)
  else response.end()
}
