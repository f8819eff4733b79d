// `echs goal`: submits a goal to the server and follows it until it ends. The exit code says whether it was met.
import { resolve } from "node:path"
import type { Client } from "../../client/Client.ts"
import type { Board } from "../goal/Board.ts"
import { followGoal } from "../goal/Follow.ts"
import { demandsIn, goalFields, goalOptions } from "../goal/Options.ts"
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { type ExitCode, exitCode, type Terminal, type Verb } from "../Verb.ts"
import { UsageError } from "../VerbSpec.ts"

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "goal",
    takes: "TEXT",
    positionals: { min: 1, max: 1 },
    options: goalOptions,
    example: "echs goal 'make the tests pass'",
    notes: [
      "Ctrl-C stops following the goal, not the goal itself. To stop it: echs plan cancel CONVERSATION",
      "A goal that waits for you says what for; then: echs plan resume CONVERSATION"
    ],
    isPatient: true,
    startsServer: true,
    run: async ({ answer, client, positionals: [goal = ""], terminal, values }) => {
      if (goal.trim() === "") throw new UsageError("TEXT is empty: describe the goal")
      const fields = goalFields(values, parts.workingDirectory(), await fileOf(parts, values["check-file"]))
      const place = values.in === undefined ? undefined : await placeIn(client, values.in, parts.workingDirectory())
      const submitted = await client.call("goal.submit", { goal, ...place?.fields, ...fields })
      if (values.detach === true) {
        answer(submitted, () => `${submitted.conversation_id} ${submitted.plan_id}\n`)
        return exitCode.done
      }
      const view = values.json === true ? quietly(terminal) : terminal
      view.write(`${view.paint("quiet", submitted.conversation_id)}\n`)
      const { conversation_id: conversationId, plan_id: planId } = submitted
      const signal = terminal.interruption()
      const board = await followGoal({
        client,
        terminal: view,
        conversationId,
        planId,
        signal,
        review: values.review === true,
        ...(place === undefined ? {} : { after: place.head })
      })
      if (values.json === true) answer(await reportOf(client, conversationId, board), () => "")
      return ended(board, conversationId, terminal)
    }
  })

/** The checks that a file names. */
const fileOf = async (parts: RemoteParts, path: string | undefined) => {
  if (path === undefined) return {}
  const bytes = await parts.readFile(resolve(parts.workingDirectory(), path)).catch((cause: unknown) => {
    throw new UsageError(`--check-file: ${cause instanceof Error ? cause.message : String(cause)}`)
  })
  return demandsIn(Buffer.from(bytes).toString("utf8"), path)
}

/** An existing conversation and its last event. */
const placeIn = async (client: Client, named: string, directory: string) => {
  const id = await findConversation(client, named, directory)
  const { last_event_id: head } = await client.call("conversation.get", { conversation_id: id })
  return { fields: { conversation_id: id }, head }
}

const quietly = (terminal: Terminal): Terminal => ({
  ...terminal,
  isAnswered: false,
  write: () => {},
  status: () => {}
})

const ended = (board: Board, conversationId: string, terminal: Terminal): ExitCode => {
  if (board.end?.outcome === "goal_met") return exitCode.done
  if (board.end !== undefined) return exitCode.failed
  terminal.complain(
    `the goal is still running; follow it with "echs tail ${conversationId}", stop it with "echs plan cancel ${conversationId}"\n`
  )
  return exitCode.interrupted
}

const reportOf = async (client: Client, conversationId: string, board: Board) => {
  const {
    cost_usd: usd,
    tool_calls: toolCalls,
    usage
  } = await client.call("conversation.get", {
    conversation_id: conversationId
  })
  const { end, startedMs } = board
  return {
    conversation_id: conversationId,
    plan_id: board.planId,
    outcome: end?.outcome ?? "running",
    ...(end?.payload ?? {}),
    tasks: board.tasks.map(({ attempt, state, task_id, title }) => ({ task_id, title, state, attempt })),
    usage,
    cost_usd: usd,
    tool_calls: toolCalls,
    duration_ms: end === undefined || startedMs === undefined ? null : end.ts_ms - startedMs
  }
}
