// `echs retry`: retries now, instead of after the scheduled wait: a failed turn, or the named tool call or hook run.
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { exitCode, type Verb } from "../Verb.ts"

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "retry",
    takes: "CONVERSATION [CALL|HOOK_RUN]",
    positionals: { min: 1, max: 2 },
    options: { agent: { type: "string", value: "ID", help: "agent whose turn to retry (default: the root agent)" } },
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
      answer({ ...place, ...changed }, () => `${run ?? id} retried\n`)
      return exitCode.done
    }
  })
