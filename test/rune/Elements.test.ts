// Elements that exist by construction, and what is said when one does not.
import { describe, expect, it } from "vitest"
import { dropOldest, elementAt, mappedTo, textBefore, valueAt } from "../../src/rune/Elements.ts"

describe("elements that exist by construction", () => {
  it("are read from lists, records and maps", () => {
    expect(elementAt(["a", "b"], 1)).toBe("b")
    expect(elementAt(Uint8Array.of(7), 0)).toBe(7)
    expect(valueAt({ s: 1_000 }, "s")).toBe(1_000)
    expect(mappedTo(new Map([["a", 1]]), "a")).toBe(1)
  })

  it("are defects with a name when they do not exist", () => {
    expect(() => elementAt(["a"], 1)).toThrow("there is no element 1 in a list of 1")
    expect(() => valueAt({}, "s")).toThrow("there is no value under s")
    expect(() => mappedTo(new Map(), "a")).toThrow("there is no value under a")
  })
})

describe("the oldest entry", () => {
  it("is the one inserted first, and nothing else goes", () => {
    const map = new Map([
      ["a", 1],
      ["b", 2]
    ])
    map.delete("a")
    map.set("a", 3)
    dropOldest(map)
    expect([...map.keys()]).toEqual(["a"])
    const set = new Set([3, 1])
    dropOldest(set)
    expect([...set]).toEqual([1])
    dropOldest(new Set())
  })
})

describe("the text before a separator", () => {
  it("is all of it when there is none", () => {
    expect(textBefore("first\nsecond\nthird", "\n")).toBe("first")
    expect(textBefore("first", "\n")).toBe("first")
    expect(textBefore("\n", "\n")).toBe("")
  })
})
