// `echs retry`: retries now, instead of after the scheduled wait: a failed turn, or the named tool call or hook run. A run
// of a turn that is over is done again in a new turn.
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { exitCode, type Verb } from "../Verb.ts"

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "retry",
    takes: "CONVERSATION [CALL|HOOK_RUN]",
    positionals: { min: 1, max: 2 },
    options: {
      agent: { type: "string", value: "ID", help: "agent whose turn to retry (default: the root agent)" },
      "repeat-effect": { type: "boolean", help: "run it again although it may have taken effect already" }
    },
    example: "echs retry last",
    run: async ({ answer, client, positionals: [named = "", run], values }) => {
      const id = await findConversation(client, named, parts.workingDirectory())
      const place = { conversation_id: id }
      const agent = values.agent === undefined ? {} : { agent_id: values.agent }
      const again = values["repeat-effect"] === true ? { repeat_effect: true } : {}
      const changed =
        run === undefined
          ? await client.call("turn.retry", { ...place, ...agent })
          : run.startsWith("hookrun_")
            ? await client.call("hook.retry", { ...place, hook_run_id: run, ...again })
            : await client.call("tool.retry", { ...place, call_id: run, ...again })
      answer({ ...place, ...changed }, () => `${run ?? id} retried\n`)
      return exitCode.done
    }
  })
