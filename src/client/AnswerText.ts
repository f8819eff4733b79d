/**
 * The text of one agent's answer while it streams. Live text runs ahead of what is durable; durable deltas and the final
 * text replace it by their place in the answer, so nothing is shown twice and what was missed is filled in.
 */
import type { AnyRune, Live } from "./Wire.ts"

export interface AnswerPiece {
  /** Continues what was given out before; `fresh` begins a new answer. */
  readonly fresh: boolean
  readonly text: string
  /** The answer is complete. */
  readonly isFinal: boolean
}

export class AnswerText {
  private request: string | undefined
  private heard = ""
  private durableChars = 0
  private isFresh = true

  /** What a rune of the agent adds to the answer; undefined for one that adds nothing. */
  rune({ kind, payload }: AnyRune): AnswerPiece | undefined {
    const { content = "", request_id: request } = payload as {
      readonly content?: unknown
      readonly request_id?: string
    }
    const text = typeof content === "string" ? content : ""
    // Live text of the request may have come before the rune that says it was made.
    if (kind === "turn.model_requested") return request === this.request ? undefined : this.begin(request)
    if (kind === "turn.assistant_delta") {
      if (request !== undefined && request !== this.request) this.begin(request)
      this.durableChars += text.length
      return this.extend(this.durableChars - text.length, text)
    }
    if (kind !== "turn.assistant_final") return undefined
    const isSame = text.startsWith(this.heard)
    const piece = isSame ? this.give(text.slice(this.heard.length), true) : this.replace(text)
    this.begin(undefined)
    return piece
  }

  /** What live text adds; undefined when it is known already, or when something before it is missing. */
  live({ offset, request_id: request, text }: Live): AnswerPiece | undefined {
    if (request !== this.request) this.begin(request)
    return this.extend(offset, text)
  }

  private begin(request: string | undefined): undefined {
    this.request = request
    this.heard = ""
    this.durableChars = 0
    this.isFresh = true
    return undefined
  }

  private extend(offset: number, text: string): AnswerPiece | undefined {
    const fresh = text.slice(Math.max(0, this.heard.length - offset))
    return offset > this.heard.length || fresh === "" ? undefined : this.give(fresh, false)
  }

  private replace(text: string): AnswerPiece {
    this.begin(undefined)
    return this.give(text, true)
  }

  private give(text: string, isFinal: boolean): AnswerPiece {
    const fresh = this.isFresh
    this.heard += text
    this.isFresh = false
    return { fresh, text, isFinal }
  }
}
