// `echs resume`: continues a paused or suspended conversation. The wire has an operation for each; a person needs only one.
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { reasonOption } from "../shared/ConversationAction.ts"
import { exitCode, type Verb } from "../Verb.ts"

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "resume",
    takes: "CONVERSATION",
    positionals: { min: 1, max: 1 },
    options: reasonOption,
    example: "echs resume last",
    run: async ({ answer, client, positionals: [named = ""], values }) => {
      const id = await findConversation(client, named, parts.workingDirectory())
      const { reason, state } = await client.call("conversation.get", { conversation_id: id })
      const isSpent = state === "suspended" && reason === "budget_exhausted"
      const op = state === "suspended" ? "conversation.unsuspend" : "conversation.resume"
      const changed = await client.call(op, {
        conversation_id: id,
        ...(values.reason === undefined ? {} : { reason: values.reason })
      })
      const hint = isSpent
        ? `its budget is used up: raise it or the conversation stops again (echs budget ${id} --tokens N)\n`
        : ""
      answer({ conversation_id: id, ...changed }, () => `${id} resumed\n${hint}`)
      return exitCode.done
    }
  })
