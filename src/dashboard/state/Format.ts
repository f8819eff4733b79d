// Numbers, times and money as the page shows them: short, tabular, always with a unit.

const thousand = 1000

/** 12,345 → "12.3k". */
export const shortNumber = (value: number): string => {
  if (value < thousand) return String(Math.round(value))
  if (value < 10 * thousand) return `${(value / thousand).toFixed(1)}k`
  if (value < thousand * thousand) return `${Math.round(value / thousand)}k`
  return `${(value / thousand / thousand).toFixed(1)}M`
}

export const wholeNumber = (value: number): string => new Intl.NumberFormat("en-US").format(Math.round(value))

const cents = 100

/** Null: some of it has no known price. */
export const money = (usd: number | null | undefined): string => {
  if (usd === null || usd === undefined) return "price unknown"
  if (usd === 0) return "$0"
  return usd < 1 / cents ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** "4 s", "12 m", "3 h", "2 d". */
export const age = (ms: number): string => {
  if (ms < second) return "now"
  if (ms < minute) return `${Math.floor(ms / second)} s`
  if (ms < hour) return `${Math.floor(ms / minute)} m`
  if (ms < day) return `${Math.floor(ms / hour)} h`
  return `${Math.floor(ms / day)} d`
}

export const duration = (ms: number): string => {
  if (ms < second) return `${Math.round(ms)} ms`
  if (ms < 10 * second) return `${(ms / second).toFixed(1)} s`
  return age(ms)
}

export const clock = (ms: number): string => new Date(ms).toLocaleTimeString("en-GB")

export const exactClock = (ms: number): string => `${clock(ms)}.${String(ms % second).padStart(3, "0")}`

export const moment = (ms: number): string => `${new Date(ms).toLocaleDateString("en-CA")} ${clock(ms)}`

export const bytes = (value: number): string => {
  const kib = 1024
  if (value < kib) return `${value} B`
  return value < kib * kib ? `${(value / kib).toFixed(1)} KiB` : `${(value / kib / kib).toFixed(1)} MiB`
}

export const plural = (count: number, word: string): string => `${wholeNumber(count)} ${word}${count === 1 ? "" : "s"}`
