// Whether an agent can be brought up: there is a provider for its model, the model is one that the provider has where that
// can be known without asking it, and there is a directory to work in. What a person can mend while the agent waits,
// such as a key that is missing, is no reason here.
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { ConversationState } from "../machine/State.ts"
import { agentOf, workspaceOf } from "../machine/view/Select.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { ErrorInfo } from "../rune/kinds/shared.ts"
import type { WorkspaceChoice } from "../sandbox/WorkspaceCheck.ts"
import type { Models } from "./Models.ts"

export interface AgentInitOptions {
  readonly models: Models
  /** Why nobody can work in a directory; nothing where somebody can. */
  readonly workspaceIssue?: ((choice: WorkspaceChoice) => string | undefined) | undefined
}

const failed = (code: string, message: string): ErrorInfo => ({
  code,
  message,
  retryable: false,
  source: "orchestrator"
})

/** Can be mended without another agent. */
const mendable: ReadonlySet<string | undefined> = new Set(["ProviderKeyMissing"])

const modelIssue = Effect.fnUntraced(function* (
  { models }: AgentInitOptions,
  fullName: string
): Effect.fn.Return<ErrorInfo | undefined> {
  const resolved = models.resolve(fullName)
  if (Result.isFailure(resolved)) {
    const { code, message } = resolved.failure
    return mendable.has(code) ? undefined : failed("model_unknown", message)
  }
  const { model, provider } = resolved.success
  const message = provider.modelIssue === undefined ? undefined : yield* provider.modelIssue(model)
  return message === undefined ? undefined : failed("model_unknown", message)
})

/** Why the agent cannot be brought up; nothing when it can. */
export const initIssue = Effect.fn("AgentInit.initIssue")(function* (
  options: AgentInitOptions,
  state: ConversationState,
  agentId: AgentId
): Effect.fn.Return<ErrorInfo | undefined> {
  const agent = agentOf(state, agentId)
  if (agent === undefined) return undefined
  const workspace = workspaceOf(state, agentId)
  const choice = { workspace, unsafe_workspace: state.session.config.unsafe_workspace === true }
  const message = workspace === undefined ? undefined : options.workspaceIssue?.(choice)
  if (message !== undefined) return failed("workspace_unusable", message)
  // An agent of another program has its own model.
  return agent.harness === null ? yield* modelIssue(options, agent.model) : undefined
})
