// Goal: sockets never get all descriptors, whatever the limit of the process is. Method: limits from a few to unlimited, the
// text that Linux gives, and the limit of this very process.
import { describe, expect, it } from "vitest"
import { descriptorLimit, descriptorPlan, parseLimit } from "#src/config/Descriptors.ts"
import { limits } from "#src/wire/WireLimits.ts"

describe("the limit of the process", () => {
  it("is read as Linux says it, and guessed low where nothing says it", () => {
    const text = "Limit                     Soft Limit           Hard Limit           Units\n"
    expect(parseLimit(`${text}Max open files            1024                 524288               files\n`)).toBe(1024)
    expect(
      parseLimit(`${text}Max open files            unlimited            unlimited            files\n`)
    ).toBeGreaterThan(1e9)
    expect(parseLimit(text)).toBeUndefined()
    expect(descriptorLimit(() => "")).toBe(1024)
    const fail = (): never => {
      throw new Error("no /proc here")
    }
    expect(descriptorLimit(fail)).toBe(1024)
    expect(descriptorLimit()).toBeGreaterThan(0)
  })

  it("is shared out so that something is left for everybody", () => {
    for (const limit of [64, 128, 200, 256, 1024, 4096, 65_536, Number.MAX_SAFE_INTEGER]) {
      const { connectionsMax, logFilesMax, socketsMax } = descriptorPlan(limit)
      expect(logFilesMax + socketsMax, String(limit)).toBeLessThanOrEqual(Math.ceil(limit * 0.75))
      expect(connectionsMax).toBeLessThan(socketsMax)
      expect(logFilesMax).toBeGreaterThanOrEqual(8)
      expect(socketsMax).toBeLessThanOrEqual(limits.socketsMax)
      expect(connectionsMax).toBeLessThanOrEqual(limits.connectionsMax)
    }
    expect(descriptorPlan(1e6)).toEqual({ logFilesMax: 1024, socketsMax: 12_000, connectionsMax: 10_000 })
    expect(descriptorPlan(1024)).toEqual({ logFilesMax: 256, socketsMax: 512, connectionsMax: 426 })
  })
})
