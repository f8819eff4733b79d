// What a call of `bash` asks for, told apart by which arguments it has. Combinations that mean nothing are refused in
// words, not guessed at.
import type { Input } from "../../Tool.ts"
import { shellLimits } from "./Limits.ts"

interface Timed {
  readonly timeoutMs: number | undefined
}

export type Wish =
  | ({ readonly _tag: "Run"; readonly command: string; readonly network: boolean } & Timed)
  | ({ readonly _tag: "RunIn"; readonly session: string; readonly command: string; readonly network: boolean } & Timed)
  | ({ readonly _tag: "Type"; readonly session: string; readonly input: string; readonly network: boolean } & Timed)
  | ({ readonly _tag: "Look"; readonly session: string } & Timed)
  | { readonly _tag: "Close"; readonly session: string }
  | { readonly _tag: "List" }
  | { readonly _tag: "Wrong"; readonly problem: string }

const wrong = (problem: string): Wish => ({ _tag: "Wrong", problem })

const textProblem = (name: string, value: unknown, charsMax: number): string | undefined => {
  if (value === undefined) return undefined
  if (typeof value !== "string") return `${name} must be text`
  if (value.includes("\0")) return `${name} must not contain a NUL character`
  return value.length > charsMax ? `${name} has at most ${charsMax} characters` : undefined
}

const numberProblem = (value: unknown): string | undefined =>
  value === undefined || (Number.isInteger(value) && Number(value) >= 1 && Number(value) <= shellLimits.commandMsMax)
    ? undefined
    : `timeout_ms is a whole number from 1 to ${shellLimits.commandMsMax}`

const flagProblem = (name: string, value: unknown): string | undefined =>
  value === undefined || typeof value === "boolean" ? undefined : `${name} is true or false`

const problemWith = ({ close, command, input, network, session, timeout_ms }: Input): string | undefined =>
  textProblem("command", command, shellLimits.commandCharsMax) ??
  textProblem("input", input, shellLimits.inputCharsMax) ??
  textProblem("session", session, shellLimits.nameCharsMax) ??
  numberProblem(timeout_ms) ??
  flagProblem("network", network) ??
  flagProblem("close", close) ??
  (session === "" ? "session must have a name" : undefined) ??
  (command !== undefined && String(command).trim() === "" ? "command must not be empty" : undefined)

/** What the arguments ask for. */
export const wishOf = (arguments_: Input): Wish => {
  const problem = problemWith(arguments_)
  if (problem !== undefined) return wrong(problem)
  const { close, command, input, network, session, timeout_ms } = arguments_ as {
    readonly [name: string]: string | undefined
  } & { readonly close?: boolean; readonly network?: boolean; readonly timeout_ms?: number }
  const timed = { timeoutMs: timeout_ms }
  if ([command, input, close === true ? "close" : undefined].filter((one) => one !== undefined).length > 1)
    return wrong("give one of command, input and close")
  if (session === undefined) {
    if (input !== undefined || close === true) return wrong("input and close need the name of a session")
    return command === undefined ? { _tag: "List" } : { _tag: "Run", command, network: network === true, ...timed }
  }
  if (command !== undefined) return { _tag: "RunIn", session, command, network: network === true, ...timed }
  if (input !== undefined) return { _tag: "Type", session, input, network: network === true, ...timed }
  return close === true ? { _tag: "Close", session } : { _tag: "Look", session, ...timed }
}
