// `echs goal`: hands a goal to the server and follows it. A server that has no planner yet says so, and so does this.
import { RequestFailed } from "../../client/Client.ts"
import { wholeNumber } from "../Kit.ts"
import { makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { RuneLines } from "../render/RuneLine.ts"
import { isDelta } from "../render/RuneText.ts"
import { exitCode, type Verb } from "../Verb.ts"

const options = {
  model: { type: "string", short: "m", value: "MODEL", help: "provider/name" },
  workspace: { type: "string", short: "w", value: "DIRECTORY", help: "where to work (default: this directory)" },
  parallel: { type: "string", value: "COUNT", help: "how many tasks may run at once" },
  detach: { type: "boolean", short: "d", help: "hand it over and do not follow" }
} as const

const ends: ReadonlySet<string> = new Set(["plan.completed", "plan.failed", "plan.cancelled", "plan.rejected"])

export const makeGoal = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "goal",
    takes: "TEXT",
    positionals: { min: 1, max: 1 },
    options,
    example: "echs goal 'make the tests pass'",
    notes: ["Goals need a server that plans. Where there is none, `echs send --new --wait TEXT` runs one turn."],
    isPatient: true,
    run: async ({ answer, client, positionals: [goal = ""], terminal, values }) => {
      const parallel = wholeNumber("parallel", values.parallel, 1)
      const submitted = await client
        .call("goal.submit", {
          goal,
          workspace: values.workspace ?? parts.workingDirectory(),
          ...(values.model === undefined ? {} : { model: values.model }),
          ...(parallel === undefined ? {} : { max_parallel: parallel })
        })
        .catch(explain)
      if (values.detach === true || values.json === true) {
        answer(submitted, () => `${submitted.conversation_id} ${submitted.plan_id}\n`)
        return exitCode.done
      }
      const signal = terminal.interruption()
      const lines = new RuneLines(terminal)
      for await (const item of client.tail(submitted.conversation_id, { signal })) {
        if (!("rune" in item)) continue
        const progress = lines.progress(item.rune)
        terminal.status(isDelta(item.rune) ? progress : undefined)
        if (!isDelta(item.rune)) terminal.write(`${lines.line(item.rune)}\n`)
        if (ends.has(item.rune.kind)) return item.rune.kind === "plan.completed" ? exitCode.done : exitCode.failed
      }
      return exitCode.interrupted
    }
  })

const explain = (error: unknown): never => {
  if (!(error instanceof RequestFailed) || error.code !== "invalid_state") throw error
  const message =
    "this server does not plan yet: goals come with a later version. One turn runs with: echs send --new --wait TEXT"
  throw new RequestFailed(error.op, { code: error.code, message, data: error.data })
}
