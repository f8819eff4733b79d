// Tool calls that wait for a decision, as `approve` and `deny` name them: by call, by conversation, by both, or "the only one".
import type { ApprovalItem, Client } from "../../client/Client.ts"
import { findConversation } from "../Remote.ts"
import { UsageError } from "../VerbSpec.ts"

export interface PendingCall {
  readonly conversationId: string
  readonly callId: string
  /** Undefined when the call no longer waits for a decision. */
  readonly item: ApprovalItem | undefined
}

export const isCallId = (text: string): boolean => /^call_\d+$/.test(text)

const only = (items: ReadonlyArray<ApprovalItem>, callId?: string): ApprovalItem => {
  const [first] = items
  if (first === undefined) {
    throw new UsageError(
      callId === undefined ? "no call is waiting for a decision" : `${callId} is not waiting for a decision`
    )
  }
  if (items.length === 1) return first
  const names = items.map((one) => `${one.conversation_id} ${one.call_id}`)
  throw new UsageError(`${items.length} calls are waiting; name one of: ${names.join(", ")}`)
}

export const pendingCall = async (
  client: Client,
  [named = "", call]: ReadonlyArray<string>,
  directory: string
): Promise<PendingCall> => {
  if (call === undefined && isCallId(named)) {
    const { items } = await client.call("approval.list", {})
    const item = only(
      items.filter((one) => one.call_id === named),
      named
    )
    return { conversationId: item.conversation_id, callId: item.call_id, item }
  }
  const conversationId = await findConversation(client, named, directory)
  const { items } = await client.call("approval.list", { conversation_id: conversationId })
  const item = call === undefined ? only(items) : items.find((one) => one.call_id === call)
  return { conversationId, callId: call ?? item?.call_id ?? "", item }
}
