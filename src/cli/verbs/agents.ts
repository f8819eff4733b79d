// `echs agents`: lists the agents of a conversation; with an option, starts one, sends it a message or ends it.
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { exitCode, type Verb } from "../Verb.ts"
import { type OptionTable, UsageError } from "../VerbSpec.ts"

const agentOptions = {
  spawn: { type: "string", value: "ROLE", help: "start another agent with this role" },
  model: { type: "string", value: "MODEL", help: "model of the new agent" },
  tell: { type: "string", value: "ID", help: "send TEXT to this agent" },
  kill: { type: "string", value: "ID", help: "end this agent" }
} as const satisfies OptionTable

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "agents",
    takes: "CONVERSATION [TEXT]",
    positionals: { min: 1, max: 2 },
    options: agentOptions,
    example: "echs agents last",
    run: async ({ answer, client, positionals: [named = "", text], values }) => {
      const place = { conversation_id: await findConversation(client, named, parts.workingDirectory()) }
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
        if (text === undefined) throw new UsageError("--tell needs TEXT after the conversation")
        const changed = await client.call("agent.message", { ...place, agent_id: tell, content: text })
        answer({ ...place, ...changed }, () => `sent to ${tell}\n`)
      } else {
        const { items } = await client.call("agent.list", place)
        const lines = items.map((one) => `${one.agent_id}  ${one.role}  ${one.status}  ${one.model}\n`)
        answer({ ...place, items }, () => lines.join(""))
      }
      return exitCode.done
    }
  })
