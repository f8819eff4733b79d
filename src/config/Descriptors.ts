// How many files and sockets the process may have open, and who gets how many of them. The sockets of clients come last:
// whatever they do, the log and the work find descriptors.
import { readFileSync } from "node:fs"

export interface DescriptorPlan {
  /** Segment files that the log keeps open. */
  readonly logFilesMax: number
  /** Sockets of any kind at once. */
  readonly socketsMax: number
  /** Connections that may stay. */
  readonly connectionsMax: number
}

/** Where the limit cannot be read: what the strictest usual system allows. */
const LIMIT_UNKNOWN = 1024
/** Most that is of use, however much the system allows. */
const LOG_FILES_MAX = 1024
const SOCKETS_MAX = 12_000
const CONNECTIONS_MAX = 10_000
/** Fewer make no server: where the limit is lower still, there is nothing left to share out. */
const LOG_FILES_MIN = 8
const SOCKETS_MIN = 16

/** The soft limit in the form of /proc/self/limits. */
export const parseLimit = (text: string): number | undefined => {
  const found = /^Max open files\s+(\d+|unlimited)/m.exec(text)?.[1]
  if (found === undefined) return undefined
  return found === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(found)
}

/** How many descriptors this process may have (RLIMIT_NOFILE). */
export const descriptorLimit = (read: () => string = () => readFileSync("/proc/self/limits", "utf8")): number => {
  try {
    return parseLimit(read()) ?? LIMIT_UNKNOWN
  } catch {
    return LIMIT_UNKNOWN
  }
}

/** Half for sockets, a quarter for the log; the rest is for journal, database, models, tools and their processes. */
export const descriptorPlan = (limit: number): DescriptorPlan => {
  const share = (part: number, least: number, most: number): number =>
    Math.min(most, Math.max(least, Math.floor(limit * part)))
  const socketsMax = share(0.5, SOCKETS_MIN, SOCKETS_MAX)
  return {
    logFilesMax: share(0.25, LOG_FILES_MIN, LOG_FILES_MAX),
    socketsMax,
    // Some are for those who ask over HTTP.
    connectionsMax: Math.min(CONNECTIONS_MAX, Math.floor((socketsMax * 5) / 6))
  }
}
