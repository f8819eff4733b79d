// Verbs about what works in a conversation: trying again what failed, raising a budget, and the agents themselves.

import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { exitCode, type Verb } from "../Verb.ts"
import { type OptionTable, UsageError, wholeNumber } from "../VerbSpec.ts"

/** Tries again at once: the model call or turn that failed, or the call or hook run that is named. */
export const makeRetry = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "retry",
    takes: "CONVERSATION [CALL|HOOK_RUN]",
    positionals: { min: 1, max: 2 },
    options: { agent: { type: "string", value: "ID", help: "whose turn; that of the root unless told" } },
    example: "echs retry last",
    run: async ({ answer, client, positionals: [named = "", run], values }) => {
      const id = await findConversation(client, named)
      const place = { conversation_id: id }
      const agent = values.agent === undefined ? {} : { agent_id: values.agent }
      const changed =
        run === undefined
          ? await client.call("turn.retry", { ...place, ...agent })
          : run.startsWith("hookrun_")
            ? await client.call("hook.retry", { ...place, hook_run_id: run })
            : await client.call("tool.retry", { ...place, call_id: run })
      answer({ ...place, ...changed }, () => `${run ?? id} is tried again\n`)
      return exitCode.done
    }
  })

const budgetOptions = {
  tokens: { type: "string", value: "N", help: "of input and output together" },
  usd: { type: "string", value: "AMOUNT", help: "US dollars" },
  "tool-calls": { type: "string", value: "N", help: "calls of tools" },
  "wall-ms": { type: "string", value: "N", help: "milliseconds in which turns run" },
  agent: { type: "string", value: "ID", help: "of this agent; of the conversation unless told" }
} as const satisfies OptionTable

const amount = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const value = Number(text)
  if (text.trim() === "" || !Number.isFinite(value) || value < 0) throw new UsageError("--usd is an amount from 0 on")
  return value
}

/** Sets what a conversation or an agent may use in all; what was used counts. */
export const makeBudget = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "budget",
    takes: "CONVERSATION",
    positionals: { min: 1, max: 1 },
    options: budgetOptions,
    example: "echs budget last --tokens 2000000",
    run: async ({ answer, client, positionals: [named = ""], values }) => {
      const given = {
        tokens: wholeNumber("--tokens", values.tokens),
        usd: amount(values.usd),
        tool_calls: wholeNumber("--tool-calls", values["tool-calls"]),
        wall_ms: wholeNumber("--wall-ms", values["wall-ms"]),
        agent_id: values.agent
      }
      const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
      if (Object.keys(set).every((name) => name === "agent_id")) {
        throw new UsageError("say what the budget is: --tokens, --usd, --tool-calls or --wall-ms")
      }
      const id = await findConversation(client, named)
      const changed = await client.call("budget.set", { conversation_id: id, ...set })
      answer({ conversation_id: id, ...changed }, () => `the budget of ${values.agent ?? id} is set\n`)
      return exitCode.done
    }
  })

const agentOptions = {
  spawn: { type: "string", value: "ROLE", help: "begins another agent" },
  model: { type: "string", value: "MODEL", help: "of the agent that is begun" },
  tell: { type: "string", value: "ID", help: "says TEXT to an agent" },
  kill: { type: "string", value: "ID", help: "ends an agent" }
} as const satisfies OptionTable

/** The agents of a conversation; with an option, one more or one less, or a word to one of them. */
export const makeAgents = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "agents",
    takes: "CONVERSATION [TEXT]",
    positionals: { min: 1, max: 2 },
    options: agentOptions,
    example: "echs agents last",
    run: async ({ answer, client, positionals: [named = "", text], values }) => {
      const place = { conversation_id: await findConversation(client, named) }
      const { kill, model, spawn, tell } = values
      if (spawn !== undefined) {
        const made = await client.call("agent.spawn", {
          ...place,
          role: spawn,
          ...(model === undefined ? {} : { model })
        })
        answer({ ...place, ...made }, () => `${made.agent_id}\n`)
      } else if (kill !== undefined) {
        const changed = await client.call("agent.kill", { ...place, agent_id: kill })
        answer({ ...place, ...changed }, () => `${kill} ended\n`)
      } else if (tell !== undefined) {
        if (text === undefined) throw new UsageError("say what to tell it")
        const changed = await client.call("agent.message", { ...place, agent_id: tell, content: text })
        answer({ ...place, ...changed }, () => `told ${tell}\n`)
      } else {
        const { items } = await client.call("agent.list", place)
        const lines = items.map((one) => `${one.agent_id}  ${one.role}  ${one.status}  ${one.model}\n`)
        answer({ ...place, items }, () => lines.join(""))
      }
      return exitCode.done
    }
  })
