// Goal: the walks in docs/ARCHITECTURE.md are the way that the code takes. Method: every file and every name on an arrow is
// looked up, and each walk is taken on a real server whose called functions are counted.
import { execFile } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { beforeAll, describe, expect, it } from "vitest"
import { top } from "../tidy/Source.ts"

interface Walk {
  readonly title: string
  /** Files by the names that arrows use. */
  readonly files: ReadonlyMap<string, string>
  readonly arrows: ReadonlyArray<{ readonly from: string; readonly to: string; readonly name: string }>
}

const parseWalk = (title: string, diagram: string): Walk => ({
  title,
  files: new Map(
    [...diagram.matchAll(/^ {2}participant (\w+) as (\S+)$/gm)].map(([, name = "", file = ""]) => [name, file])
  ),
  arrows: [...diagram.matchAll(/^ {2}(\w+)--?>>(\w+): ([\w.]+)/gm)].map(([, from = "", to = "", name = ""]) => ({
    from,
    to,
    name
  }))
})

const page = readFileSync(join(top, "docs", "ARCHITECTURE.md"), "utf8")
const walks = [...page.matchAll(/^### ([^\n]+)\n[^#]*?```mermaid\nsequenceDiagram\n(.*?)```/gms)].map(
  ([, title = "", diagram = ""]) => parseWalk(title, diagram)
)

let called: Readonly<Record<string, ReadonlyArray<string>>> = {}

beforeAll(async () => {
  const program = fileURLToPath(new URL("../support/walks.ts", import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [program], { maxBuffer: 16 * 1024 * 1024 })
  called = JSON.parse(stdout) as typeof called
}, 120_000)

describe("the walks of the architecture", () => {
  it("are the four that are taken", () => {
    expect(walks.map(({ title }) => title)).toEqual(Object.keys(called))
  })

  it("are drawn with lines that Mermaid reads: a semicolon would end one, and the word end a block", () => {
    const lines = [...page.matchAll(/```mermaid\nsequenceDiagram\n(.*?)```/gs)].flatMap(([, text = ""]) =>
      text.split("\n")
    )
    const plain = /^ {2}(participant \w+ as [\w./]+|\w+--?>>\w+: (?!.*\bend\b)[\w.]+( \([^;#()]+\))?)$/
    expect(lines.filter((line) => line !== "" && !plain.test(line))).toEqual([])
  })

  it.each(walks)("$title: names files that are there, and every arrow a name in the file it points to", (walk) => {
    const faults = walk.arrows.flatMap(({ from, name, to }) => {
      const file = walk.files.get(to)
      if (file === undefined || !walk.files.has(from)) return [`${from} to ${to}: nobody of that name takes part`]
      if (!existsSync(join(top, file))) return [`${file} is not there`]
      const isNamed = new RegExp(`\\b${name.replaceAll(".", "\\.")}\\b`).test(readFileSync(join(top, file), "utf8"))
      return isNamed ? [] : [`${file} has no ${name}`]
    })
    expect(faults).toEqual([])
    const ends = new Set(walk.arrows.flatMap(({ from, to }) => [from, to]))
    expect([...walk.files.keys()].filter((name) => !ends.has(name))).toEqual([])
  })

  it.each(walks)("$title: goes through each of its files", ({ files, title }) => {
    expect([...files.values()].filter((file) => !called[title]?.includes(file))).toEqual([])
  })

  it("post a message through fewer than twenty files", () => {
    expect(walks[0]?.title).toBe("message.post")
    expect(walks[0]?.files.size).toBeLessThan(20)
  })
})
