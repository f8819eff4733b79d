// Goal: Markdown that streams is drawn once per block, no wider than the window, and control characters never reach the
// terminal. Method: texts cut at every place give the same rows as the whole.
import { stripVTControlCharacters } from "node:util"
import { describe, expect, it } from "vitest"
import { markdownRows } from "#src/cli/render/Markdown.ts"
import { widthOf } from "#src/cli/render/Text.ts"

const text = `# Rounding

The function **rounds** with \`round(x)\`, which is [wrong](https://example.org) for money. It has to be replaced by a decimal.

- first item that is long enough to be wrapped at a narrow window, twice
- second
  1. nested

| name | value |
|------|-------|
| cent | 0.01 |

\`\`\`python
def price(x):  # comment
    return "a" + 1
\`\`\`

> quoted

    indented code
last line`

const view = (columns: number) => ({ columns, paint: (tone: string, shown: string) => `<${tone}>${shown}</>` })
const plain = (columns: number) => ({ columns, paint: (_tone: string, shown: string) => shown })

const streamed = (whole: string, columns: number, step: number): ReadonlyArray<string> => {
  const rows: Array<string> = []
  let left = ""
  for (let at = 0; at < whole.length; at += step) {
    const part = markdownRows(left + whole.slice(at, at + step), false, plain(columns))
    rows.push(...part.rows)
    left = part.rest
  }
  return [...rows, ...markdownRows(left, true, plain(columns)).rows]
}

describe("markdown", () => {
  it("draws headings, emphasis, links, lists, tables and code", () => {
    const rows = markdownRows(text, true, view(200)).rows
    expect(rows[0]).toBe("<strong>Rounding</>")
    expect(rows.join("\n")).toContain("<strong>rounds</> with <accent>round(x)</>")
    expect(rows.join("\n")).toContain("<accent>wrong</> <quiet>(https://example.org)</>")
    expect(rows).toContain("• second")
    expect(rows).toContain("<strong>name  value</>")
    expect(rows).toContain("cent  0.01")
    expect(rows).toContain("  <model>def</> price(x):  <quiet># comment</>")
    expect(rows).toContain('      <model>return</> <good>"a"</> + <notice>1</>')
    expect(rows).toContain("    indented code")
  })

  it.each([1, 3, 17])("gives the same rows when it comes in pieces of %i", (step) => {
    expect(streamed(text, 60, step)).toEqual(markdownRows(text, true, plain(60)).rows)
  })

  it.each([20, 40, 80])("fits %i columns", (columns) => {
    for (const row of markdownRows(text, true, plain(columns)).rows) expect(widthOf(row)).toBeLessThanOrEqual(columns)
  })

  it("gives out a block only when it is complete", () => {
    expect(markdownRows("a paragraph\nthat goes", false, plain(80))).toEqual({
      rows: [],
      rest: "a paragraph\nthat goes"
    })
    expect(markdownRows("```js\nlet a", false, plain(80)).rows).toEqual([])
    expect(markdownRows("- item\n", false, plain(80)).rows).toEqual(["• item"])
  })

  it("obeys nothing that the text says to the terminal", () => {
    const rows = markdownRows("a\u001b[2Jb\u0007 `\u001b]0;title\u0007`\n", true, plain(80)).rows.join("\n")
    expect(rows).toBe(stripVTControlCharacters(rows))
    expect(rows).not.toMatch(/\p{Cc}(?<!\n)/u)
  })
})
