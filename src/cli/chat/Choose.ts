// Which conversation a chat is about: a new one, a named one, the latest of this directory, or one chosen from a list.
import { type Client, type ConversationItem, RequestFailed } from "../../client/Client.ts"
import { findConversation } from "../Remote.ts"
import { moment, oneLine, table } from "../render/Text.ts"
import { conversationsIn, latestIn } from "../shared/Directory.ts"
import type { Terminal } from "../Verb.ts"
import { UsageError } from "../VerbSpec.ts"

export interface Choice {
  readonly client: Client
  readonly directory: string
  readonly terminal: Terminal
  readonly named: string | undefined
  readonly isContinued: boolean
  readonly isPicked: boolean
}

const listMax = 20

const none = (): RequestFailed =>
  new RequestFailed("conversation.list", {
    code: "not_found",
    message: "there is no conversation in this directory yet. Start one: echs"
  })

/** Undefined when a new conversation is wanted. */
export const chooseConversation = async (choice: Choice): Promise<string | undefined> => {
  const { client, directory, isContinued, isPicked, named } = choice
  const asked = [named !== undefined, isContinued, isPicked].filter((one) => one).length
  if (asked > 1) throw new UsageError("name a conversation, or use one of --continue and --resume")
  if (named !== undefined) return findConversation(client, named, directory)
  if (isPicked) return pick(choice)
  if (!isContinued) return undefined
  const latest = await latestIn(client, directory)
  if (latest === undefined) throw none()
  return latest.conversation_id
}

const rowsOf = (items: ReadonlyArray<ConversationItem>, terminal: Terminal): ReadonlyArray<string> =>
  table(
    items.map((item, at) => [
      `${at + 1}`,
      moment(item.updated_ms),
      `${item.turns} turn${item.turns === 1 ? "" : "s"}`,
      item.state === "active" ? "" : item.state,
      oneLine(item.title === "" ? item.conversation_id : item.title)
    ]),
    terminal
  ).map(([number = "", ...rest]) => `${terminal.paint("strong", number)}  ${rest.join("  ").trimEnd()}`)

const pick = async ({ client, directory, terminal }: Choice): Promise<string> => {
  const found = await conversationsIn(client, directory, listMax)
  const items = found.filter(({ turns }) => turns > 0).toSorted((left, right) => right.updated_ms - left.updated_ms)
  if (items.length === 0) throw none()
  if (!terminal.isAnswered) throw new UsageError("--resume asks at a terminal; name a conversation instead")
  terminal.write(`${rowsOf(items, terminal).join("\n")}\n`)
  const answer = (await terminal.ask("which one? (Enter for 1) ", new AbortController().signal))?.trim()
  const chosen = items[answer === "" ? 0 : Number(answer) - 1]
  if (answer === undefined || chosen === undefined)
    throw new UsageError(`there is no number ${answer ?? ""} in the list`)
  return chosen.conversation_id
}
