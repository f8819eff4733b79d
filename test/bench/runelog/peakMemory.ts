// The most memory that this process ever had resident. Not `maxRSS` where it can be helped: on Linux that counter
// survives the start of a program, so a child of a large process begins with the peak of its parent.
import { readFileSync } from "node:fs"

const KIB = 1024

export const peakResidentBytes = (): number => {
  if (process.platform !== "linux") return process.resourceUsage().maxRSS * KIB
  const [, kibibytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? []
  if (kibibytes === undefined) throw new Error("the system does not say how much memory was resident at most")
  return Number(kibibytes) * KIB
}
