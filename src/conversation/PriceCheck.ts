// A budget in dollars holds only where prices are known. Whoever gives one to a model without a price, or such a model to a
// budget, is told so before anything is spent.
import type { Command } from "../machine/Command.ts"
import type { ConversationState } from "../machine/State.ts"
import { agentOf, aliveAgents, pathOf } from "../machine/view/Select.ts"
import type { Budget } from "../rune/kinds/shared.ts"

type IsPriced = (model: string) => boolean

const inDollars = (budget: Budget | null | undefined): boolean => budget?.usd !== undefined

/** The models that a budget in dollars would have to be held for, once the command has been taken. */
const modelsHeld = (command: Command, state: ConversationState): ReadonlyArray<string> => {
  const { config, root_agent_id: root } = state.session
  const isLimited = inDollars(config.budget)
  switch (command._tag) {
    case "CreateConversation":
      return inDollars(command.config.budget) || inDollars(command.root.budget) ? [command.root.model] : []
    case "SpawnAgent": {
      const { budget, model, parent_id: parent } = command.spec
      const above = parent === undefined ? [] : pathOf(state, parent).map((id) => agentOf(state, id)?.budget)
      return isLimited || [budget, ...above].some(inDollars) ? [model] : []
    }
    case "SubmitGoal": {
      const { budget, options } = command.payload
      const model = agentOf(state, root)?.model ?? config.model
      return model !== undefined && [config.budget, budget, options?.task_budget].some(inDollars) ? [model] : []
    }
    case "UpdateConfig": {
      const { agent_id: agentId, budget, changes } = command
      const whole = agentId === undefined ? (budget ?? changes.budget ?? config.budget) : config.budget
      return aliveAgents(state).flatMap((agent) => {
        const isNamed = agent.agent_id === (agentId ?? root)
        const own = agent.agent_id === agentId ? (budget ?? agent.budget) : agent.budget
        if (![whole, own].some(inDollars)) return []
        return [isNamed ? (changes.model ?? agent.model) : agent.model]
      })
    }
    default:
      return []
  }
}

/** What is wrong with the command, if it asks for a budget in dollars that could not be held. */
export const priceIssue = (command: Command, state: ConversationState, isPriced: IsPriced): string | undefined => {
  const model = modelsHeld(command, state).find((one) => !isPriced(one))
  return model === undefined ? undefined : priceUnknown(model)
}

const priceUnknown = (model: string): string =>
  `a budget in dollars cannot be enforced for ${model}, because its price is unknown: set its price under models in config.json, or give a budget in tokens`
