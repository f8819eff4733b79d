// The commands of a chat, `/name`: one list for running, completing and `/help`. Each gives back the rows to print.
import { inboxRows } from "../render/Inbox.ts"
import { usageText } from "../render/RuneText.ts"
import { oneLine, safeText } from "../render/Text.ts"
import type { ChatCommands } from "./ChatCommands.ts"
import type { Candidate } from "./Completion.ts"
import { undo } from "./UndoCommand.ts"

type Rows = ReadonlyArray<string>

interface Command {
  readonly name: string
  readonly about: string
  readonly run: (chat: ChatCommands, rest: string) => Promise<Rows>
}

const nothing: Rows = []

const summaryOf = (chat: ChatCommands) =>
  chat.client().call("conversation.get", { conversation_id: chat.conversationId() })

const help = async (chat: ChatCommands): Promise<Rows> => {
  const { paint } = chat.terminal()
  const width = Math.max(...list.map(({ name }) => name.length))
  return [
    ...list.map(({ about, name }) => `  ${paint("strong", `/${name.padEnd(width)}`)}  ${about}`),
    "",
    "  Enter sends, or queues while a turn runs; Ctrl-Enter steers. Shift-Enter, Alt-Enter or a backslash at the end: new line.",
    "  @path names a file (Tab completes; an image is attached). Up and Down: earlier messages. Ctrl-G: your editor.",
    "  Esc or Ctrl-C stops the turn and keeps what was said; Ctrl-C twice or Ctrl-D leaves. The conversation stays."
  ]
}

const cost = async (chat: ChatCommands): Promise<Rows> => {
  const { agents, tool_calls: calls, turns, usage } = await summaryOf(chat)
  const rows = agents.map((agent) => `  ${agent.role}  ${agent.model}  ${usageText(agent.usage)}`)
  return [`  ${turns} turns, ${calls} tool calls, ${usageText(usage)}`, ...(agents.length > 1 ? rows : [])]
}

const agents = async (chat: ChatCommands): Promise<Rows> => {
  const summary = await summaryOf(chat)
  return summary.agents.map(
    ({ agent_id: id, model, name, role, status }) => `  ${id}  ${oneLine(name ?? role)}  ${status}  ${model}`
  )
}

const plan = async (chat: ChatCommands): Promise<Rows> => {
  const { plan: shown } = await summaryOf(chat)
  if (shown === null) return ["  no goal is pursued here. Start one: echs goal 'TEXT'"]
  return [
    `  ${shown.status}: ${oneLine(shown.goal)}`,
    ...shown.tasks.map(({ status, task }) => `  ${marks[status] ?? "·"} ${oneLine(task.title)}  ${status}`)
  ]
}

const marks: Readonly<Record<string, string>> = { completed: "✓", failed: "✗", running: "⚙", cancelled: "–" }

const inbox = async (chat: ChatCommands): Promise<Rows> => {
  const { items } = await chat.client().call("approval.list", {})
  const others = items.filter((item) => item.conversation_id !== chat.conversationId())
  return others.length === 0
    ? ["  nothing waits in other conversations"]
    : others.flatMap((item) => inboxRows(item, chat.terminal()))
}

const list: ReadonlyArray<Command> = [
  { name: "help", about: "show the commands and the keys", run: help },
  {
    name: "steer",
    about: "send a message into the turn that is running",
    run: async (chat, rest) => {
      if (rest === "") return ["  say what: /steer TEXT"]
      await chat.send(rest, "steer")
      return nothing
    }
  },
  {
    name: "stop",
    about: "stop the turn and keep the text so far",
    run: async (chat) => {
      chat.stop()
      return nothing
    }
  },
  { name: "cost", about: "show turns, tokens and cost", run: cost },
  { name: "undo", about: "bring back the files of the last turn, or of a turn by number", run: undo },
  { name: "agents", about: "list the agents of this conversation", run: agents },
  { name: "plan", about: "show the plan of a goal", run: plan },
  { name: "inbox", about: "show what waits for you in other conversations", run: inbox },
  {
    name: "output",
    about: "show the whole output of the last tool",
    run: async (chat) =>
      safeText(chat.lastOutput() || "no tool has run yet")
        .split("\n")
        .map((line) => `  ${line}`)
  },
  {
    name: "editor",
    about: "write in your editor (also Ctrl-G)",
    run: async (chat) => {
      chat.edit()
      return nothing
    }
  },
  {
    name: "quit",
    about: "leave; the conversation stays",
    run: async (chat) => {
      chat.leave()
      return nothing
    }
  }
]

export const commandList: ReadonlyArray<Candidate> = list

/** The command; or, for an unknown name, what to say about it. */
export const commandNamed = (name: string): Command | string => {
  const exact = list.find((one) => one.name === name)
  if (exact !== undefined) return exact
  const fitting = list.filter((one) => one.name.startsWith(name))
  const [only] = fitting
  if (only !== undefined && fitting.length === 1 && name !== "") return only
  return `unknown command "/${name}". /help lists the commands`
}
