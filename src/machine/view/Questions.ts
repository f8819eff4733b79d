/**
 * Questions that an MCP server asks a person in the course of a call. Each is a call of its own, outside any turn,
 * whose id says in the course of which call and attempt it is asked; it ends with them.
 */
import type { CallId } from "../../rune/Ids.ts"
import type { RuneDraft } from "../../rune/Rune.ts"
import type { Drafting } from "../decide/Drafting.ts"
import { endCall } from "../decide/Ending.ts"
import type { CallState, ConversationState } from "../State.ts"
import { isOpen } from "./Select.ts"

const mark = ".question_"

export const questionId = (asking: {
  readonly call_id: CallId
  readonly attempt: number
  readonly ordinal: number
}): CallId => `${asking.call_id}${mark}${asking.attempt}_${asking.ordinal}` as CallId

/** The call in the course of which it is asked; nothing for other calls. */
export const askingCall = (callId: CallId): CallId | undefined => {
  const at = callId.lastIndexOf(mark)
  return at < 0 ? undefined : (callId.slice(0, at) as CallId)
}

/** Questions that are open. */
export const openQuestions = (state: ConversationState): ReadonlyArray<CallState> =>
  state.calls.filter((call) => call.turn_id === null && isOpen(call) && askingCall(call.call_id) !== undefined)

const endedBy = ({ kind, payload }: RuneDraft): CallId | undefined =>
  kind === "tool.result" || kind === "tool.started" ? (payload as { readonly call_id: CallId }).call_id : undefined

/** Whatever ends a call, or starts it again, ends what was asked in its course. */
export const endQuestions = (sheet: Drafting): undefined => {
  const questions = openQuestions(sheet.state)
  if (questions.length === 0) return
  const touched = new Set(sheet.drafts.map(endedBy))
  for (const question of questions) {
    const isEnded = sheet.drafts.some((one) => one.kind === "tool.result" && endedBy(one) === question.call_id)
    if (isEnded || !touched.has(askingCall(question.call_id))) continue
    endCall(sheet, question, "the call that asked has ended", "cancel")
  }
}
