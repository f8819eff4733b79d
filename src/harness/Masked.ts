// Takes secrets out of what programs report, and bounds it, before any of it is written down.
import { harnessLimits } from "./HarnessLimits.ts"

const depthMax = 12
const membersMax = 500

/** The same value with every text masked and shortened; what nests too deep or is too long is left out. */
export const maskedValue = (value: unknown, mask: (text: string) => string, depth = 0): unknown => {
  if (typeof value === "string") return mask(value).slice(0, harnessLimits.messageCharsMax)
  if (typeof value !== "object" || value === null) return value
  if (depth >= depthMax) return "[too deep]"
  if (Array.isArray(value)) return value.slice(0, membersMax).map((one) => maskedValue(one, mask, depth + 1))
  const entries = Object.entries(value).slice(0, membersMax)
  return Object.fromEntries(entries.map(([key, held]) => [mask(key), maskedValue(held, mask, depth + 1)]))
}
