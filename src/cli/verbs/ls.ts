// `echs ls`: lists conversations, newest first.
import type { ConversationItem } from "../../client/Client.ts"
import { makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { attentionText, stateTones } from "../render/ConversationState.ts"
import { moment, oneLine, table } from "../render/Text.ts"
import { exitCode, type Terminal, type Verb } from "../Verb.ts"
import { type OptionTable, wholeNumber } from "../VerbSpec.ts"

const listOptions = {
  state: { type: "string", value: "STATE", help: "active, paused, suspended, closed or archived" },
  label: { type: "string", value: "KEY[=VALUE]", help: "only conversations with this label" },
  query: { type: "string", short: "q", value: "TEXT", help: "only where title, labels or id contain TEXT" },
  limit: { type: "string", short: "n", value: "COUNT", help: "at most this many (default 50)" }
} as const satisfies OptionTable

const defaultLimit = 50
const pageMax = 200

export const make = (parts: RemoteParts): Verb =>
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
