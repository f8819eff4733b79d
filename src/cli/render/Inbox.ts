// A question of the inbox: who asks, what exactly would run, and at its end how to answer it.
import type { ApprovalItem } from "../../client/Client.ts"
import { visible } from "../../present/VisibleText.ts"
import type { Terminal } from "../Verb.ts"
import { decisionRows } from "./Decision.ts"

const howTo = ({ call_id: callId, conversation_id: id, tool_name: tool }: ApprovalItem): string =>
  tool === "ask_user" ? `echs approve ${id} ${callId} --answer TEXT` : `echs approve ${id} ${callId}`

export const inboxRows = (item: ApprovalItem, terminal: Terminal): ReadonlyArray<string> => {
  const { paint } = terminal
  const path = (item.agent_names ?? []).map(visible).join(" › ")
  const head = `${item.conversation_id} ${paint("strong", item.call_id)}`
  return [
    `${head}${path === "" ? "" : `  ${paint("quiet", path)}`}`,
    ...decisionRows(item, terminal),
    `  ${howTo(item)}, or echs deny ${item.conversation_id} ${item.call_id}`
  ]
}
