// Reads what a program says to its terminal beside what it shows: its status (OSC 7501), and questions that somebody
// must answer where no real terminal does. Sequences may be torn between two pieces of output.
import type { ProgramStatus } from "../Port.ts"

export interface Found {
  readonly statuses: ReadonlyArray<ProgramStatus["state"]>
  /** The program asks whether its status is understood. */
  readonly asksStatus: boolean
  /** 10: the color of text, 11: of the background. */
  readonly asksColors: ReadonlyArray<"10" | "11">
}

const carryMax = 2_048
const escape = "\u001b"
const bell = "\u0007"
// ESC ] number ; content, ended by BEL or ESC \.
const sequence = new RegExp(`${escape}\\](7501|10|11);([^${bell}${escape}]{0,1024})(?:${bell}|${escape}\\\\)`, "g")
const states: ReadonlySet<string> = new Set(["idle", "working", "done", "blocked"])

export class TerminalQueries {
  private carry = ""

  read(piece: Uint8Array): Found {
    const text = this.carry + Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString("latin1")
    const statuses: Array<ProgramStatus["state"]> = []
    const asksColors: Array<"10" | "11"> = []
    let asksStatus = false
    let end = 0
    for (const match of text.matchAll(sequence)) {
      const [whole, number, content = ""] = match
      end = match.index + whole.length
      const state = /^state=([a-z]+)/.exec(content)?.[1]
      if (number === "7501" && content === "?") asksStatus = true
      else if (number === "7501" && state !== undefined && states.has(state))
        statuses.push(state as ProgramStatus["state"])
      else if (number !== "7501" && content === "?") asksColors.push(number as "10" | "11")
    }
    const open = text.lastIndexOf(`${escape}]`)
    const from = open >= end ? open : text.endsWith(escape) ? text.length - 1 : text.length
    this.carry = text.length - from <= carryMax ? text.slice(from) : ""
    return { statuses, asksStatus, asksColors }
  }
}

export const statusUnderstood = "\u001b]7501;?1\u001b\\"
export const colorAnswers = {
  "10": "\u001b]10;rgb:ffff/ffff/ffff\u001b\\",
  "11": "\u001b]11;rgb:0000/0000/0000\u001b\\"
} as const
