// `echs deny`: refuses a tool call that waits for a decision; the model sees the reason.
import { makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { reasonOption } from "../shared/ConversationAction.ts"
import { pendingCall } from "../shared/PendingCall.ts"
import { exitCode, type Verb } from "../Verb.ts"

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "deny",
    takes: "CONVERSATION [CALL]",
    positionals: { min: 1, max: 2 },
    options: { ...reasonOption, interrupt: { type: "boolean", help: "also end the turn" } },
    example: "echs deny last call_2 --reason 'not in this directory'",
    run: async ({ answer, client, positionals, values }) => {
      const { callId, conversationId: id } = await pendingCall(client, positionals, parts.workingDirectory())
      const changed = await client.call("approval.deny", {
        conversation_id: id,
        call_id: callId,
        ...(values.reason === undefined ? {} : { reason: values.reason }),
        ...(values.interrupt === true ? { interrupt: true } : {})
      })
      answer({ conversation_id: id, call_id: callId, ...changed }, () => `${callId} denied\n`)
      return exitCode.done
    }
  })
