// The pieces that descriptions of runes are made of. Payloads come from a server that may be newer: nothing in them is
// taken for granted.
import type { Tone } from "../Verb.ts"
import { oneLine } from "./Text.ts"

export type Payload = Readonly<Record<string, unknown>>

export interface RuneText {
  readonly tone: Tone | undefined
  readonly mark: string
  readonly text: string
}

export type Describe = (payload: Payload) => RuneText

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "")
export const objectOf = (value: unknown): Payload =>
  typeof value === "object" && value !== null ? (value as Payload) : {}
export const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

export const joined = (...parts: ReadonlyArray<string>): string => parts.filter((part) => part !== "").join(" · ")

export const line =
  (tone: Tone | undefined, mark: string, text: (payload: Payload) => string): Describe =>
  (payload) => ({ tone, mark, text: oneLine(text(payload)) })
