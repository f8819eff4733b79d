// What changes the server itself: its tokens, and its end. For admins alone; whoever holds a server in a program of their
// own decides whether there is any of it.
import * as Effect from "effect/Effect"
import type { Administration } from "./Context.ts"
import { CurrentOperation, type HandlersOf, type Operating } from "./CurrentOperation.ts"
import { InvalidState, NotFound } from "./OperationErrors.ts"

const administration: Operating<Administration> = CurrentOperation.use(({ administration: offered }) =>
  offered === undefined
    ? Effect.fail(new InvalidState("this server is managed by the program that embeds it"))
    : Effect.succeed(offered)
)

export const administrationHandlers: HandlersOf<"token" | "server"> = {
  "token.list": () => Effect.map(administration, ({ tokens }) => ({ items: tokens() })),
  "token.create": ({ name, role }) =>
    Effect.gen(function* () {
      const token = name === "local" ? undefined : (yield* administration).createToken(name, role)
      if (token === undefined) return yield* new InvalidState(`a token "${name}" already exists`)
      return { name, role, token }
    }),
  "token.remove": ({ name }) =>
    Effect.gen(function* () {
      if (!(yield* administration).removeToken(name)) return yield* new NotFound(`there is no token "${name}"`)
      return { name }
    }),
  "server.info": () =>
    CurrentOperation.use(({ about, defaultModel }) => Effect.succeed({ ...about(), model: defaultModel() })),
  "server.fibers": () => CurrentOperation.use(({ conversations }) => Effect.sync(() => conversations.fibers())),
  "server.stop": ({ reason = "asked for" }) =>
    Effect.gen(function* () {
      const { principal } = yield* CurrentOperation
      const { stop } = yield* administration
      stop(`${principal.name}: ${reason}`)
      return { stopping: true }
    })
}
