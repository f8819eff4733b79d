/** Goal: the diagrams in docs/machines are those of the tables (node test/support/generateDiagrams.ts rewrites them). */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { drawings, pageOf } from "./Diagram.ts"

const root = join(import.meta.dirname, "..", "..", "docs", "machines")

describe("machine diagrams", () => {
  it.each(drawings)("$name is drawn as its table says", (drawing) => {
    expect(readFileSync(join(root, `${drawing.name}.md`), "utf8")).toBe(pageOf(drawing))
  })

  it("are complete, and nothing else is there", () => {
    expect(readdirSync(root).sort()).toEqual(drawings.map(({ name }) => `${name}.md`).sort())
    expect(drawings.map(({ name }) => name)).toEqual([
      "Session",
      "Agent",
      "Turn",
      "Tool",
      "Hook",
      "Autonomy",
      "Monitor",
      "Attention"
    ])
  })

  it("draw every edge once and share arrows between the same two statuses", () => {
    for (const drawing of drawings) {
      const arrows = pageOf(drawing)
        .split("\n")
        .filter((line) => line.includes(" --> ") && line.includes(" : "))
      const commands = arrows.flatMap((line) => line.split(" : ")[1]!.split(" / "))
      expect(commands).toHaveLength(drawing.edges.length)
      expect(new Set(arrows.map((line) => line.split(" : ")[0])).size).toBe(arrows.length)
    }
  })
})
