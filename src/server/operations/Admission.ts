// The word of hooks about what a person says, before it is taken: a message and a goal are the same to them. What they
// block ends in an error of the protocol, and nothing was started; what they add is part of what is taken.
import type { Content } from "../../rune/kinds/shared.ts"
import type { OperationContext, PromptScene } from "./Context.ts"
import { InvalidState } from "./OperationErrors.ts"

/** What the hooks of the conversation make of a message. */
export const admitted = async (
  { beforePrompt }: Pick<OperationContext, "beforePrompt">,
  scene: () => Promise<PromptScene>,
  content: Content
): Promise<Content> => {
  if (beforePrompt === undefined) return content
  const verdict = await beforePrompt(await scene(), content)
  if (verdict._tag === "Blocked") throw new InvalidState(verdict.reason, { state: "blocked" })
  return verdict.content
}
