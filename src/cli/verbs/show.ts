// `echs show`: summarizes a conversation; with `--prompt`, prints the instructions its model receives.
import type { ConversationPrompt, ConversationSummary } from "../../client/Client.ts"
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { attentionText, stateTones } from "../render/ConversationState.ts"
import { inboxRows } from "../render/Inbox.ts"
import { usageText } from "../render/RuneText.ts"
import { moment, number, oneLine, safeText } from "../render/Text.ts"
import { exitCode, type Terminal, type Verb } from "../Verb.ts"

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "show",
    takes: "CONVERSATION",
    positionals: { min: 1, max: 1 },
    options: {
      prompt: { type: "boolean", help: "print the instructions and notes the model receives besides the messages" },
      agent: { type: "string", value: "AGENT", help: "with --prompt: this agent's (default: the first agent)" }
    },
    example: "echs show last",
    run: async ({ answer, client, positionals: [named = ""], terminal, values }) => {
      if (values.prompt === true) {
        const fields = { conversation_id: await findConversation(client, named, parts.workingDirectory()) }
        const agent = values.agent === undefined ? {} : { agent_id: values.agent }
        const prompt = await client.call("conversation.prompt", { ...fields, ...agent })
        answer(prompt, () => promptText(prompt, terminal))
        return exitCode.done
      }
      const summary = await client.call("conversation.get", {
        conversation_id: await findConversation(client, named, parts.workingDirectory())
      })
      answer(summary, () => summaryText(summary, terminal))
      return exitCode.done
    }
  })

/** The instructions verbatim, then each later note and the note of the next request under its own heading. */
const promptText = ({ instructions, next, notes, sent }: ConversationPrompt, terminal: Terminal): string => {
  const headed = (head: string, text: string): string =>
    `\n${terminal.paint("quiet", `--- ${head}`)}\n${safeText(text)}\n`
  const earlier = notes.map(({ event_id, text }) => headed(`sent at event ${event_id}`, text))
  const last = next === null ? [] : [headed("goes out with the next request", next)]
  if (instructions === null) return "the agent has ended; its prompt is not kept\n"
  if (instructions === "") return "no instructions: the model receives only the messages\n"
  const note = sent ? [] : [headed("not sent yet", "The next request will begin with the text above.")]
  return [`${safeText(instructions)}\n`, ...earlier, ...last, ...note].join("")
}

type FailedRun = ConversationSummary["agents"][number]["failed_runs"][number]

/** A run that did not go well, with the command that has it done again. */
const failedRunText = (
  conversationId: string,
  { id, name, needs_repeat_effect: isEffect, status }: FailedRun
): string =>
  `    ${id}  ${oneLine(name)}  ${status}  retry: echs retry ${conversationId} ${id}${isEffect ? " --repeat-effect" : ""}\n`

const summaryText = (summary: ConversationSummary, terminal: Terminal): string => {
  const { paint } = terminal
  const tone = stateTones[summary.state] ?? "quiet"
  const facts: ReadonlyArray<readonly [string, string]> = [
    [
      "state",
      `${paint(tone, summary.state)}${summary.working ? " · working" : ""}${summary.reason ? ` · ${oneLine(summary.reason)}` : ""}`
    ],
    ["attention", attentionText(summary.attention)],
    ["workspace", summary.workspace ?? "none"],
    ["created", moment(summary.created_ms)],
    ["updated", moment(summary.updated_ms)],
    ["runes", number(summary.last_event_id)],
    ["turns", `${number(summary.turns)}, ${number(summary.tool_calls)} tool calls`],
    ["used", usageText(summary.usage)]
  ]
  const agents = summary.agents.flatMap((agent) => [
    `  ${paint("accent", agent.agent_id)}  ${agent.role}  ${agent.status}  ${agent.model}${agent.turn_id === null ? "" : `  ${agent.turn_id} ${agent.turn_status ?? ""}`}\n`,
    ...agent.failed_runs.map((run) => failedRunText(summary.conversation_id, run))
  ])
  const questions = summary.pending_approvals.map((item) => `${inboxRows(item, terminal).join("\n")}\n`)
  return [
    `${paint("strong", summary.conversation_id)}  ${oneLine(summary.title ?? "")}\n`,
    ...facts.map(([name, value]) => `  ${paint("quiet", name.padEnd(9))}  ${value}\n`),
    ...agents,
    ...questions
  ].join("")
}
