// Goal: live text and durable deltas of one answer give its text once, in order, whatever of the live text is lost and
// however the two interleave. Method: random answers cut twice, live pieces dropped at random, both merged at random.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { AnswerText, type AnyRune } from "#src/client/Client.ts"
import { seedFor } from "../support/seed.ts"

const rune = (kind: string, payload: object): AnyRune => ({ kind, payload }) as unknown as AnyRune

interface Piece {
  readonly offset: number
  readonly text: string
}

const cut = (text: string, places: ReadonlyArray<number>): ReadonlyArray<Piece> => {
  const at = [...new Set([0, ...places.map((place) => place % (text.length + 1)), text.length])].toSorted(
    (a, b) => a - b
  )
  return at.slice(0, -1).map((from, index) => ({ offset: from, text: text.slice(from, at[index + 1]) }))
}

describe("the text of an answer", () => {
  it("is given out once and in order", () => {
    const places = fc.array(fc.nat(200), { maxLength: 20 })
    fc.assert(
      fc.property(
        fc.string({ maxLength: 200 }),
        places,
        places,
        fc.array(fc.nat(2), { maxLength: 60 }),
        (text, one, other, order) => {
          const live = [...cut(text, one)]
          const durable = [...cut(text, other)]
          const answer = new AnswerText()
          let shown = ""
          const take = (piece: ReturnType<AnswerText["live"]>): void => {
            if (piece === undefined) return
            if (piece.fresh) expect(shown).toBe("")
            shown += piece.text
          }
          const step = (which: number): void => {
            const next = which === 2 ? undefined : which === 1 ? live.shift() : durable.shift()
            if (which === 2) live.shift()
            else if (next !== undefined && which === 1)
              take(answer.live({ agent_id: "a", turn_id: "t", request_id: "r", ...next }))
            else if (next !== undefined)
              take(answer.rune(rune("turn.assistant_delta", { content: next.text, request_id: "r" })))
            expect(text.startsWith(shown)).toBe(true)
          }
          for (const which of order) step(which)
          take(answer.rune(rune("turn.assistant_final", { content: text, request_id: "r" })))
          expect(shown).toBe(text)
        }
      ),
      { seed: seedFor("answer text") }
    )
  })

  it("stays when the rune that says it was requested comes after its first words, and begins again with another request", () => {
    const answer = new AnswerText()
    const live = { agent_id: "a", turn_id: "t", request_id: "r1", offset: 0, text: "Hello" }
    expect(answer.live(live)).toEqual({ fresh: true, text: "Hello", isFinal: false })
    expect(answer.rune(rune("turn.model_requested", { request_id: "r1" }))).toBeUndefined()
    expect(answer.live({ ...live, offset: 5, text: "!" })).toEqual({ fresh: false, text: "!", isFinal: false })
    answer.rune(rune("turn.model_requested", { request_id: "r2" }))
    expect(answer.live({ ...live, request_id: "r2" })).toEqual({ fresh: true, text: "Hello", isFinal: false })
  })
})
