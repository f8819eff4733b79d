// `echs budget`: sets the total a conversation or an agent may use. Past use counts toward it.
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { exitCode, type Verb } from "../Verb.ts"
import { type OptionTable, UsageError, wholeNumber } from "../VerbSpec.ts"

const budgetOptions = {
  tokens: { type: "string", value: "N", help: "input and output tokens together" },
  usd: { type: "string", value: "AMOUNT", help: "US dollars" },
  "tool-calls": { type: "string", value: "N", help: "number of tool calls" },
  "wall-ms": { type: "string", value: "N", help: "milliseconds of running turns" },
  agent: { type: "string", value: "ID", help: "limit this agent instead of the conversation" }
} as const satisfies OptionTable

const amount = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const value = Number(text)
  if (text.trim() === "" || !Number.isFinite(value) || value < 0)
    throw new UsageError("--usd must be a number, 0 or greater")
  return value
}

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "budget",
    takes: "CONVERSATION",
    positionals: { min: 1, max: 1 },
    options: budgetOptions,
    example: "echs budget last --tokens 2000000",
    run: async ({ answer, client, positionals: [named = ""], values }) => {
      const given = {
        tokens: wholeNumber("tokens", values.tokens),
        usd: amount(values.usd),
        tool_calls: wholeNumber("tool-calls", values["tool-calls"]),
        wall_ms: wholeNumber("wall-ms", values["wall-ms"]),
        agent_id: values.agent
      }
      const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
      if (Object.keys(set).every((name) => name === "agent_id")) {
        throw new UsageError("missing limit: give --tokens, --usd, --tool-calls or --wall-ms")
      }
      const id = await findConversation(client, named, parts.workingDirectory())
      const changed = await client.call("budget.set", { conversation_id: id, ...set })
      answer({ conversation_id: id, ...changed }, () => `budget set for ${values.agent ?? id}\n`)
      return exitCode.done
    }
  })
