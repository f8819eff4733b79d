// Reads the pause a provider asks for. Three spellings exist: milliseconds (`retry-after-ms`), seconds and an
// HTTP date (`retry-after`). A pause that cannot be read is no pause.

export interface HeaderReader {
  readonly get: (name: string) => string | null
}

const positive = (value: number): number | undefined =>
  Number.isFinite(value) && value >= 0 ? Math.ceil(value) : undefined

const decimal = /^\d{1,12}(\.\d{1,6})?$/

export const parseRetryAfterMs = (headers: HeaderReader | undefined, nowMs: number): number | undefined => {
  if (headers === undefined) return undefined
  const milliseconds = headers.get("retry-after-ms")?.trim()
  if (milliseconds !== undefined && decimal.test(milliseconds)) return positive(Number(milliseconds))
  const value = headers.get("retry-after")?.trim()
  if (value === undefined || value === "") return undefined
  if (decimal.test(value)) return positive(Number(value) * 1000)
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs)
}
