// The handler of every operation that the server answers. The type is total: an operation without a handler does not
// compile. Each mutating one is one command to one conversation, and answers only when what it caused is durable.
import * as Effect from "effect/Effect"
import { administrationHandlers } from "./administration.ts"
import { agentHandlers } from "./agents.ts"
import type { HandlersOf, HandlerTable } from "./CurrentOperation.ts"
import { conversationHandlers } from "./conversations.ts"
import { decisionHandlers } from "./decisions.ts"
import { stats } from "./figures.ts"
import { goalHandlers } from "./goals.ts"
import { messageHandlers } from "./messages.ts"
import { InvalidState } from "./OperationErrors.ts"
import { toolHandlers } from "./remoteTools.ts"

const noOutsideAgent = () => Effect.fail(new InvalidState("an outside agent is not available on this server"))

const harnessHandlers: HandlersOf<"harness"> = {
  "harness.list": () => Effect.succeed({ items: [] }),
  "harness.send": noOutsideAgent,
  "harness.interrupt": noOutsideAgent
}

export const handlers: HandlerTable = {
  ...conversationHandlers,
  ...messageHandlers,
  ...goalHandlers,
  ...decisionHandlers,
  ...agentHandlers,
  ...toolHandlers,
  ...harnessHandlers,
  ...administrationHandlers,
  stats
}
