// What programs of outside agents report and ask over HTTP, each with the token it was started with. Whoever does not wait
// for the answer any more ends the question.
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { OutsideAgents } from "../../contract/OutsideAgents.ts"
import { BadRequest, Unauthorized } from "../operations/OperationErrors.ts"
import { answerJson, readBytes } from "./HttpAnswer.ts"

interface Report {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly url: URL
  readonly agents: OutsideAgents
  readonly onKnown: (socket: Duplex) => void
}

export const answerOutside = async ({ agents, onKnown, request, response, url }: Report): Promise<void> => {
  const { authorization, "content-encoding": contentEncoding = "", "content-type": contentType = "" } = request.headers
  if (!agents.knows(authorization)) throw new Unauthorized("the token of the outside agent is missing or wrong")
  onKnown(request.socket)
  if (request.method !== "POST") throw new BadRequest(`${request.method} is not supported here`)
  const body = await readBytes(request, agents.bytesMax)
  const gone = new AbortController()
  response.once("close", () => gone.abort())
  const answer = agents.receive({ path: url.pathname, authorization, contentType, contentEncoding, body })
  const exit = await Effect.runPromiseExit(answer, { signal: gone.signal })
  if (Exit.isSuccess(exit)) answerJson(response, exit.value.status, exit.value.json)
  else if (!gone.signal.aborted) throw Cause.squash(exit.cause)
}
