// The handler of every operation that the server answers. The type is total: an operation without a handler does not
// compile. Each mutating one is one command to one conversation, and answers only when what it caused is durable.
import { administrationHandlers } from "./administration.ts"
import { agentHandlers } from "./agents.ts"
import type { HandlerTable } from "./CurrentOperation.ts"
import { checkpointHandlers } from "./checkpoints.ts"
import { conversationHandlers } from "./conversations.ts"
import { decisionHandlers } from "./decisions.ts"
import { stats } from "./figures.ts"
import { goalHandlers } from "./goals.ts"
import { harnessHandlers } from "./harness.ts"
import { messageHandlers } from "./messages.ts"
import { policyHandlers } from "./policies.ts"
import { toolHandlers } from "./remoteTools.ts"

export const handlers: HandlerTable = {
  ...conversationHandlers,
  ...messageHandlers,
  ...goalHandlers,
  ...decisionHandlers,
  ...checkpointHandlers,
  ...agentHandlers,
  ...toolHandlers,
  ...harnessHandlers,
  ...policyHandlers,
  ...administrationHandlers,
  stats
}
