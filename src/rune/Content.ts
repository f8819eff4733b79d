// What can be said of a message without knowing who it is for.
import type { Content } from "./kinds/shared.ts"

/** Nothing is said and nothing comes with it: no provider takes such a message, and nobody can answer it. */
export const isEmptyContent = (content: Content): boolean =>
  typeof content === "string"
    ? content.trim() === ""
    : content.every((part) => part.type === "text" && part.text.trim() === "")

export const emptyContent = "the message is empty: say something, or attach an image or a file"
export const emptyGoal = "the goal is empty: say what is to be done"
