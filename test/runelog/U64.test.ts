// Goal: numbers of 64 bits are stored as the format says and come back exactly. Method: the borders, beside BigInt.
import { describe, expect, it } from "vitest"
import { getU64, setU64 } from "#runelog/U64.ts"

describe("a number of 64 bits", () => {
  it.each([0, 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 48 + 3, Number.MAX_SAFE_INTEGER])(
    "holds %d",
    (value) => {
      const view = new DataView(new ArrayBuffer(24))
      setU64(view, 5, value)
      expect(view.getBigUint64(5, true)).toBe(BigInt(value))
      expect(getU64(view, 5)).toBe(value)
      expect(view.getUint8(4) + view.getUint8(13)).toBe(0)
    }
  )
})
