// The first screen of a chat: which model answers, what holds its commands, what was spent, what waits, and what to try.
// A pure function of what the server said.
import type { Answer, Client } from "../../client/Client.ts"
import { fitStart, money, oneLine, pad, widthOf } from "../render/Text.ts"
import { conversationsIn } from "../shared/Directory.ts"
import type { Terminal } from "../Verb.ts"

export interface WelcomeFacts {
  readonly version: string
  readonly directory: string
  /** With `~` for the home directory. */
  readonly shownDirectory: string
  readonly branch: string | undefined
  readonly model: string
  readonly mode: string
  readonly sandbox: Answer<"server.info">["sandbox"]
  /** Spent in the last 24 hours; null when some of it has no known price. */
  readonly spentUsd: number | null
  /** Other conversations that were started for this directory. */
  readonly others: number
  readonly waiting: number
}

type View = Pick<Terminal, "columns" | "paint">

const conversationsShownMax = 20

export const gatherFacts = async (
  client: Client,
  about: Pick<WelcomeFacts, "branch" | "directory" | "shownDirectory" | "version"> & { readonly conversationId: string }
): Promise<WelcomeFacts> => {
  const { conversationId, ...given } = about
  const [info, summary, stats, here, attention] = await Promise.all([
    client.call("server.info", {}),
    client.call("conversation.get", { conversation_id: conversationId }),
    client.call("stats", { window: "24h" }),
    conversationsIn(client, given.directory, conversationsShownMax),
    client.call("attention.list", {})
  ])
  const window = (stats as { readonly window?: { readonly cost_usd?: number | null } }).window
  return {
    ...given,
    model: summary.agents[0]?.model ?? info.model,
    mode: "auto",
    sandbox: info.sandbox,
    spentUsd: window?.cost_usd ?? null,
    others: here.filter((one) => one.conversation_id !== conversationId && one.turns > 0).length,
    waiting: attention.items.length
  }
}

const sandboxText = (sandbox: WelcomeFacts["sandbox"]): string =>
  sandbox === null ? "no commands" : sandbox.contained ? `sandbox: ${sandbox.level}` : "no sandbox"

const spentText = (usd: number | null): string =>
  usd === null
    ? "cost of the last 24 h unknown"
    : usd === 0
      ? "nothing spent in the last 24 h"
      : `${money(usd)} in the last 24 h`

const plural = (count: number, one: string): string => `${count} ${one}${count === 1 ? "" : "s"}`

const keyRows = (paint: View["paint"]): ReadonlyArray<string> => [
  "",
  `${paint("notice", "!")} no model key is set: a scripted demo answers`,
  `  a real model: ${paint("strong", "echs login anthropic")} or ${paint("strong", "echs login openai")}, then ${paint("strong", "echs")} again`,
  `  what ECHS does, without a key: ${paint("strong", "echs demo")}`
]

const sandboxRows = (sandbox: WelcomeFacts["sandbox"], paint: View["paint"]): ReadonlyArray<string> =>
  sandbox === null || sandbox.contained
    ? []
    : [
        `${paint("notice", "!")} no sandbox: every command needs approval. Install one: ${paint("strong", "apt install bubblewrap")}, then ${paint("strong", "echs server stop")}`
      ]

const tryRows = (paint: View["paint"]): ReadonlyArray<string> => [
  "",
  `${paint("quiet", "try")}  what is in this directory?`,
  `${paint("quiet", "   ")}  @FILE explain this file`,
  `${paint("quiet", "   ")}  /help`
]

/** Two facts on one row where they fit, else below each other. */
const sides = (left: string, right: string, columns: number): ReadonlyArray<string> =>
  widthOf(left) + widthOf(right) + 2 <= columns
    ? [`${pad(left, columns - widthOf(right))}${right}`]
    : [fitStart(left, columns), fitStart(right, columns)]

export const welcomeRows = (facts: WelcomeFacts, { columns, paint }: View): ReadonlyArray<string> => {
  const room = Math.max(20, columns() - 1)
  const { branch, model, mode, others, sandbox, shownDirectory, spentUsd, version, waiting } = facts
  const place = `echs ${version} · ${oneLine(shownDirectory)}${branch === undefined ? "" : ` (${oneLine(branch)})`}`
  const state = [
    spentText(spentUsd),
    ...(others === 0 ? [] : [`${plural(others, "conversation")} here (echs --resume)`]),
    ...(waiting === 0 ? [] : [`${plural(waiting, "item")} in your inbox (echs inbox)`])
  ].join(" · ")
  return [
    ...sides(place, `${oneLine(model)} · ${mode} · ${sandboxText(sandbox)}`, room).map((row) => paint("strong", row)),
    paint("quiet", fitStart(state, room)),
    ...sandboxRows(sandbox, paint),
    ...(model.startsWith("scripted/") ? keyRows(paint) : tryRows(paint)),
    ""
  ]
}
