// What the fake provider is asked for, written into the name of the model: how many pieces of text, and how long it
// pauses between two of them.
import { type Answer, fragments, plainAnswer } from "../../support/provider-server/Answer.ts"

export interface StreamShape {
  readonly deltas: number
  readonly paceMs: number
}

export const modelOf = ({ deltas, paceMs }: StreamShape): string => `deltas-${deltas}-pace-${paceMs}`

export const shapeOf = (model: string): StreamShape => {
  const found = /^deltas-(\d+)-pace-(\d+)$/.exec(model)
  if (found === null) throw new Error(`"${model}" names no stream`)
  return { deltas: Number(found[1]), paceMs: Number(found[2]) }
}

const words = "the parser keeps its place and the printer wraps every line that is too long "

/** An answer that arrives in so many pieces of a few characters, as models send them. */
export const answerOf = ({ deltas }: StreamShape): Answer => {
  const pieces = fragments(words.repeat(Math.ceil((deltas * 4) / words.length) + 1)).slice(0, deltas)
  if (pieces.length !== deltas) throw new Error(`${pieces.length} pieces instead of ${deltas}`)
  return { ...plainAnswer, text: pieces.join("") }
}
