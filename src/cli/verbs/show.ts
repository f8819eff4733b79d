// Verbs that look and change nothing: `ls`, `show`, `stats` and `export`.
import type { ConversationItem, ConversationPrompt, ConversationSummary } from "../../client/Client.ts"
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { inboxRows } from "../render/Inbox.ts"
import { usageText } from "../render/RuneText.ts"
import { moment, number, oneLine, safeText, table } from "../render/Text.ts"
import { exitCode, type Terminal, type Tone, type Verb } from "../Verb.ts"
import { type OptionTable, wholeNumber } from "../VerbSpec.ts"

const stateTones: Readonly<Record<string, Tone>> = {
  active: "good",
  paused: "notice",
  suspended: "bad",
  closed: "quiet",
  archived: "quiet"
}

const listOptions = {
  state: { type: "string", value: "STATE", help: "active, paused, suspended, closed, archived" },
  label: { type: "string", value: "KEY[=VALUE]", help: "only with this label" },
  query: { type: "string", short: "q", value: "TEXT", help: "only with this in title, labels or id" },
  limit: { type: "string", short: "n", value: "COUNT", help: "at most this many (default 50)" }
} as const satisfies OptionTable

const defaultLimit = 50
const pageMax = 200

export const makeLs = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "ls",
    options: listOptions,
    example: "echs ls --state active",
    run: async ({ answer, client, terminal, values }) => {
      const limit = wholeNumber("limit", values.limit, 1) ?? defaultLimit
      const items: Array<ConversationItem> = []
      let cursor: string | undefined
      do {
        const page = await client.call("conversation.list", {
          limit: Math.min(pageMax, limit - items.length),
          ...(values.state === undefined ? {} : { state: values.state }),
          ...(values.label === undefined ? {} : { label: values.label }),
          ...(values.query === undefined ? {} : { q: values.query }),
          ...(cursor === undefined ? {} : { cursor })
        })
        items.push(...page.items)
        cursor = page.next_cursor
      } while (cursor !== undefined && items.length < limit)
      answer({ items }, () => listText(items, terminal))
      return exitCode.done
    }
  })

const listText = (items: ReadonlyArray<ConversationItem>, terminal: Terminal): string => {
  if (items.length === 0) return terminal.paint("quiet", "no conversations\n")
  const rows = items.map((item) => [
    item.conversation_id,
    item.state,
    attentionText(item.attention),
    `${item.turns} turn${item.turns === 1 ? "" : "s"}`,
    moment(item.updated_ms),
    oneLine(item.title ?? "")
  ])
  return table(rows, terminal)
    .map(([id = "", state = "", attention = "", ...rest], at) => {
      const tone = stateTones[items[at]?.state ?? ""] ?? "quiet"
      return `${[terminal.paint("strong", id), terminal.paint(tone, state), terminal.paint("notice", attention), ...rest].join("  ").trimEnd()}\n`
    })
    .join("")
}

const attentionText = (attention: unknown): string => {
  const status =
    typeof attention === "string" ? attention : ((attention as { readonly status?: unknown } | null)?.status ?? "")
  return String(status).replaceAll("_", " ")
}

export const makeShow = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "show",
    takes: "CONVERSATION",
    positionals: { min: 1, max: 1 },
    options: {
      prompt: { type: "boolean", help: "print what the model is told before and beside the messages" },
      agent: { type: "string", value: "AGENT", help: "with --prompt: of this agent; of the first unless told" }
    },
    example: "echs show last",
    run: async ({ answer, client, positionals: [named = ""], terminal, values }) => {
      if (values.prompt === true) {
        const fields = { conversation_id: await findConversation(client, named) }
        const agent = values.agent === undefined ? {} : { agent_id: values.agent }
        const prompt = await client.call("conversation.prompt", { ...fields, ...agent })
        answer(prompt, () => promptText(prompt, terminal))
        return exitCode.done
      }
      const summary = await client.call("conversation.get", { conversation_id: await findConversation(client, named) })
      answer(summary, () => summaryText(summary, terminal))
      return exitCode.done
    }
  })

/** The instructions as they are; what was told later, and what would be, under a line of its own. */
const promptText = ({ instructions, next, notes, sent }: ConversationPrompt, terminal: Terminal): string => {
  const headed = (head: string, text: string): string =>
    `\n${terminal.paint("quiet", `--- ${head}`)}\n${safeText(text)}\n`
  const told = notes.map(({ event_id, text }) => headed(`told at event ${event_id}`, text))
  const last = next === null ? [] : [headed("would be told with the next request", next)]
  if (instructions === null) return "the agent is over: its prompt is not kept\n"
  if (instructions === "") return "the model is told nothing but the messages\n"
  const note = sent ? [] : [headed("not sent yet", "The next request would begin with the above.")]
  return [`${safeText(instructions)}\n`, ...told, ...last, ...note].join("")
}

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
  const agents = summary.agents.map(
    (agent) =>
      `  ${paint("accent", agent.agent_id)}  ${agent.role}  ${agent.status}  ${agent.model}${agent.turn_id === null ? "" : `  ${agent.turn_id} ${agent.turn_status ?? ""}`}\n`
  )
  const questions = summary.pending_approvals.map((item) => `${inboxRows(item, terminal).join("\n")}\n`)
  return [
    `${paint("strong", summary.conversation_id)}  ${oneLine(summary.title ?? "")}\n`,
    ...facts.map(([name, value]) => `  ${paint("quiet", name.padEnd(9))}  ${value}\n`),
    ...agents,
    ...questions
  ].join("")
}

export const makeStats = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "stats",
    takes: "[CONVERSATION]",
    positionals: { min: 0, max: 1 },
    options: {},
    example: "echs stats last",
    run: async ({ answer, client, positionals: [named], terminal }) => {
      const scope = named === undefined ? {} : { conversation_id: await findConversation(client, named) }
      const stats = await client.call("stats", scope)
      answer(stats, () => {
        const rows = flat(stats)
        const width = Math.max(0, ...rows.map(([name]) => name.length))
        return rows.map(([name, value]) => `${terminal.paint("quiet", name.padEnd(width))}  ${value}\n`).join("")
      })
      return exitCode.done
    }
  })

/** Numbers in numbers, by their paths. */
const flat = (value: Readonly<Record<string, unknown>>, prefix = ""): ReadonlyArray<readonly [string, string]> =>
  Object.entries(value).flatMap(([name, member]) => {
    const path = `${prefix}${name}`
    if (typeof member === "object" && member !== null)
      return flat(member as Readonly<Record<string, unknown>>, `${path}.`)
    return [[path, typeof member === "number" ? number(member) : String(member)] as const]
  })

export const makeExport = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "export",
    takes: "CONVERSATION",
    positionals: { min: 1, max: 1 },
    options: { after: { type: "string", value: "EVENT", help: "begin after this event id" } },
    example: "echs export last > conversation.jsonl",
    notes: ["Prints one rune a line, as JSON, with and without --json."],
    run: async ({ client, positionals: [named = ""], terminal, values }) => {
      const id = await findConversation(client, named)
      const signal = terminal.interruption()
      for await (const item of client.tail(id, { after: wholeNumber("after", values.after) ?? 0, signal })) {
        if ("caught_up" in item) return exitCode.done
        if ("rune" in item) terminal.write(`${JSON.stringify(item.rune)}\n`)
        await terminal.drained()
      }
      return signal.aborted ? exitCode.interrupted : exitCode.done
    }
  })
