// Reads the pause a provider asks for. Three spellings exist: milliseconds (`retry-after-ms`), seconds and an
// HTTP date (`retry-after`). A pause that cannot be read is no pause.

export interface HeaderReader {
  readonly get: (name: string) => string | null
}

const positive = (value: number): number | undefined =>
  Number.isFinite(value) && value >= 0 ? Math.ceil(value) : undefined

/** Dates are read only in the form HTTP prescribes: a lenient reader takes "-1" for the year 2001. */
const httpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

const decimal = /^\d{1,12}(\.\d{1,6})?$/

export const parseRetryAfterMs = (headers: HeaderReader | undefined, nowMs: number): number | undefined => {
  if (headers === undefined) return undefined
  const milliseconds = headers.get("retry-after-ms")?.trim()
  if (milliseconds !== undefined && decimal.test(milliseconds)) return positive(Number(milliseconds))
  const value = headers.get("retry-after")?.trim()
  if (value === undefined || value === "") return undefined
  if (decimal.test(value)) return positive(Number(value) * 1000)
  return httpDate.test(value) ? positive(Math.max(0, Date.parse(value) - nowMs)) : undefined
}
