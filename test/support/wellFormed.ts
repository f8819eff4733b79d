/** What every provider demands of a list of messages with tool calls in it. */
import type { RequestMessage } from "#src/machine/view/Request.ts"

/** Throws unless every call is followed at once by its outputs, in order, with unique wire ids. */
export const expectWellFormed = (list: ReadonlyArray<RequestMessage>): void => {
  const wireIds = new Set<string>()
  for (let at = 0; at < list.length; at++) {
    const message = list[at]!
    if (message.role === "tool") throw new Error(`output ${message.call_id} without its call`)
    if (message.role !== "assistant") continue
    for (const part of message.parts) {
      if (part.type !== "tool_call") continue
      const output = list[++at]
      if (output?.role !== "tool" || output.call_id !== part.call_id) throw new Error(`${part.call_id} has no output`)
      if (output.wire_call_id !== part.wire_call_id || wireIds.has(part.wire_call_id)) throw new Error("wire ids clash")
      wireIds.add(part.wire_call_id)
    }
  }
}
