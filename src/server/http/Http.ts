// The HTTP side of the listener. Every address but the public ones needs the token, also one where nothing is; what a
// WebSocket can ask for can be asked for here too, by the same operations and with the same answers.
import type { IncomingMessage, ServerResponse } from "node:http"
import { describeError } from "../../contract/ServerLog.ts"
import { bearerOf } from "../Auth.ts"
import type { Principal } from "../operations/Context.ts"
import { wireErrorOfRejection } from "../operations/Failures.ts"
import { NotFound, Unauthorized } from "../operations/OperationErrors.ts"
import { directPaths } from "./DirectPaths.ts"
import { DirectRoutes } from "./DirectRoutes.ts"
import { answerError, answerJson, closeUnread, urlOf } from "./HttpAnswer.ts"
import type { HttpOptions } from "./HttpParts.ts"
import { answerOutside } from "./OutsideReports.ts"
import { beginSession, endSession, isPagePath, principalOfCookie, sendPageFile, sessionPath } from "./Page.ts"
import type { Routes } from "./Router.ts"

export class Http {
  private readonly options: HttpOptions
  private readonly direct: DirectRoutes
  private routes: Promise<Routes> | undefined

  constructor(options: HttpOptions) {
    this.options = options
    this.direct = new DirectRoutes(options)
  }

  get eventStreams(): number {
    return this.direct.eventStreams
  }

  /** Shows readers of events that the server is still there. */
  beat(): void {
    this.direct.beat()
  }

  endStreams(): void {
    this.direct.endStreams()
  }

  /** Answers a request whose host and origin were checked. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.route(request, response)
    } catch (error) {
      const wire = wireErrorOfRejection(error)
      if (wire.code === "internal") this.options.log.write("error", "a request failed", { cause: describeError(error) })
      closeUnread(request, response)
      if (response.headersSent) response.destroy()
      else answerError(response, wire)
    }
  }

  private async route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = urlOf(request)
    if (url.pathname === directPaths.checkHealth) return this.checkHealth(request, response)
    const { outsideAgents } = this.options
    if (outsideAgents?.answers(url.pathname) === true)
      return answerOutside({ request, response, url, agents: outsideAgents, onKnown: this.options.onKnown })
    if (await this.servesPage(url, request, response)) return
    const { auth } = this.options
    const principal = auth.byToken(bearerOf(request.headers.authorization)) ?? principalOfCookie(auth, request)
    if (url.pathname === sessionPath && request.method === "POST")
      return beginSession(auth, principal, request, response)
    if (url.pathname === sessionPath && request.method === "DELETE") return endSession(request, response)
    if (principal !== undefined) {
      this.options.onKnown(request.socket)
      const answered = this.direct.answer({ request, response, principal, url })
      if (answered !== undefined) return answered
    }
    return this.throughRouter(request, response, url, principal)
  }

  private async servesPage(url: URL, request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    const { page } = this.options
    const isRead = request.method === "GET" || request.method === "HEAD"
    if (page === undefined || !isRead || !isPagePath(url.pathname)) return false
    return sendPageFile(page, url.pathname, request, response)
  }

  /** Loaded with the first request for it: most servers talk over sockets, and start without. */
  private loadRoutes(): Promise<Routes> {
    this.routes ??= import("./Router.ts").then(({ makeRoutes }) => makeRoutes(this.options))
    return this.routes
  }

  private async throughRouter(
    request: IncomingMessage,
    response: ServerResponse,
    url: URL,
    principal: Principal | undefined
  ): Promise<void> {
    const { isPublicAt, methodsAt, route, writeAnswer } = await this.loadRoutes()
    if (principal === undefined && !isPublicAt(url.pathname)) throw new Unauthorized("the token is missing or wrong")
    const methods = methodsAt(url.pathname)
    if (methods.length === 0) throw new NotFound(`there is nothing at ${url.pathname.slice(0, 200)}`)
    if (!methods.includes(request.method ?? "")) return refuseMethod(request, response, methods)
    const answer = await route({ request, url, principal })
    if (answer.status >= 400) closeUnread(request, response)
    return writeAnswer(response, answer)
  }

  /** Not ok is not 200: who only looks at the status, or asks with HEAD, must see it too. */
  private checkHealth(request: IncomingMessage, response: ServerResponse): void {
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD")
      const error = { code: "bad_request", message: "the health check supports GET and HEAD" }
      answerJson(response, 405, { error })
      return
    }
    const health = this.options.health()
    answerJson(response, health.status === "ok" ? 200 : 503, health)
  }
}

const refuseMethod = ({ method }: IncomingMessage, response: ServerResponse, methods: ReadonlyArray<string>): void => {
  response.setHeader("allow", methods.join(", "))
  answerJson(response, 405, { error: { code: "bad_request", message: `${method} is not supported here` } })
}
