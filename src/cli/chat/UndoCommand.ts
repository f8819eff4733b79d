// `/undo` in a chat: shows what would change, and does it when the person says so.
import { type UndoPreview, undoneText, undoRows } from "../render/UndoText.ts"
import { whichOf } from "../verbs/undo.ts"
import type { ChatCommands } from "./ChatCommands.ts"

/** What the person saw last, in each chat. */
const seen = new WeakMap<ChatCommands, UndoPreview>()

const targets = { yes: "files", files: "files", conversation: "conversation", both: "both" } as const

const patchLinesMax = 40

const look = async (chat: ChatCommands, rest: string): Promise<ReadonlyArray<string>> => {
  const preview = await chat
    .client()
    .call("checkpoint.preview", { conversation_id: chat.conversationId(), ...whichOf(rest) })
  const rows = undoRows(preview, chat.terminal(), { patchLinesMax })
  if (preview.files_total === 0) return rows
  seen.set(chat, preview)
  const hint = "/undo yes brings these files back; /undo both also copies the conversation up to the turn"
  return [...rows, `  ${chat.terminal().paint("notice", hint)}`]
}

export const undo = async (chat: ChatCommands, rest: string): Promise<ReadonlyArray<string>> => {
  const what = Object.hasOwn(targets, rest) ? targets[rest as keyof typeof targets] : undefined
  if (what === undefined) return look(chat, rest)
  const preview = seen.get(chat)
  if (preview === undefined) return look(chat, "")
  seen.delete(chat)
  const { checkpoint, tree } = preview
  const which = { conversation_id: chat.conversationId(), checkpoint_id: checkpoint.checkpoint_id }
  const done = await chat.client().call("checkpoint.restore", { ...which, tree, what })
  const { conversation_id: copy } = done
  const resume = copy === undefined ? [] : ["  open the copy with: echs --resume"]
  return [`  ✓ ${undoneText(done)}`, ...resume]
}
