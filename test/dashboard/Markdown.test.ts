// Goal: what models write is read as Markdown and never as anything else. Method: the tree of hostile and ordinary texts.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type Block, type Inline, parseMarkdown } from "#src/dashboard/state/Markdown.ts"
import { seedFor } from "../support/seed.ts"

const inlines = (nodes: ReadonlyArray<Inline>): ReadonlyArray<Inline> =>
  nodes.flatMap((node) => ("children" in node ? [node, ...inlines(node.children)] : [node]))

const allInlines = (blocks: ReadonlyArray<Block>): ReadonlyArray<Inline> =>
  blocks.flatMap((block) => {
    if (block.type === "paragraph" || block.type === "heading") return inlines(block.children)
    if (block.type === "quote") return allInlines(block.children)
    if (block.type === "list") return block.items.flatMap(allInlines)
    return block.type === "table" ? [block.head, ...block.rows].flatMap((row) => row.flatMap(inlines)) : []
  })

describe("Markdown", () => {
  it("leaves tags as text", () => {
    expect(parseMarkdown("<script>alert(1)</script>")).toEqual([
      { type: "paragraph", children: [{ type: "text", text: "<script>alert(1)</script>" }] }
    ])
  })

  it("makes no link of anything but http, https and mail", () => {
    for (const target of [
      "javascript:alert(1)",
      "JaVaScRiPt:alert(1)",
      "data:text/html,x",
      "vbscript:x",
      "//evil",
      "file:///etc"
    ])
      expect(
        allInlines(parseMarkdown(`[click](${target})`)).filter(({ type }) => type === "link"),
        target
      ).toEqual([])
    expect(allInlines(parseMarkdown("[site](https://example.org/x)"))[0]).toMatchObject({
      type: "link",
      href: "https://example.org/x"
    })
  })

  it("knows headings, lists in lists, code, quotes, tables and rules", () => {
    const text =
      "# T\n\n- one\n  - two\n\n1. a\n\n```ts\nlet x\n```\n\n> said\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n**b** *i* `c`"
    expect(parseMarkdown(text).map(({ type }) => type)).toEqual([
      "heading",
      "list",
      "list",
      "code",
      "quote",
      "table",
      "rule",
      "paragraph"
    ])
  })

  it("keeps a fence open until its end, or the end of the text", () => {
    expect(parseMarkdown("```\n<b>\n# no heading")).toEqual([{ type: "code", language: "", text: "<b>\n# no heading" }])
  })

  it("takes any text without failing, in time that grows with its length", () => {
    const parts = fc.constantFrom(
      "*",
      "**",
      "_",
      "`",
      "```",
      "[",
      "](",
      ")",
      "http://a",
      "\n",
      "> ",
      "- ",
      "|",
      "-",
      " ",
      "x",
      "#"
    )
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 200 }), (pieces) => {
        parseMarkdown(pieces.join(""))
      }),
      { seed: seedFor("Markdown"), numRuns: 500 }
    )
    expect(parseMarkdown("*".repeat(50_000)).length).toBeGreaterThan(0)
    expect(parseMarkdown("[".repeat(50_000)).length).toBeGreaterThan(0)
    expect(parseMarkdown("> ".repeat(5_000)).length).toBeGreaterThan(0)
  })
})
