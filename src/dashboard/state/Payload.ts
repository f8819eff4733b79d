// Payloads of runes come from a server that may be newer than the page: nothing in them is taken for granted.

export type Payload = Readonly<Record<string, unknown>>

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "")
export const numberOf = (value: unknown): number => (typeof value === "number" ? value : 0)
export const objectOf = (value: unknown): Payload =>
  typeof value === "object" && value !== null ? (value as Payload) : {}
export const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** Text of a message, which is a string or parts. */
export const contentText = (content: unknown): string =>
  typeof content === "string"
    ? content
    : listOf(content)
        .map((part) => {
          const { name, text, type } = objectOf(part)
          return textOf(text) || `[${textOf(type)}${name === undefined ? "" : ` ${textOf(name)}`}]`
        })
        .join("\n")
