// Goal: the tables of the designs name code and tests that exist, and a test for every row. Method: the pages are parsed,
// symbols are looked up in syntax trees, names of tests are asked of vitest itself; then rows that lie, one of each kind.
import { beforeAll, describe, expect, it } from "vitest"
import { reportCount } from "../support/counts.ts"
import { readTree, type SourceFile } from "../tidy/Source.ts"
import { codeSpans } from "./Markdown.ts"
import { namesAsRun, namesAsWritten, namesIn, type SeedRow, seedFaults, seedRows } from "./SeedTable.ts"

const pages = ["docs/seeds/state-machines.md", "docs/seeds/session.md"]
/** Their tests are about the designs alone: each is somebody's proof. */
const ownTests = ["test/machine/Seeds.test.ts", "test/machine/SeedStates.test.ts"]

const files = new Map(readTree().map((file) => [file.path, file]))
const textOf = (path: string): string => files.get(path)?.text ?? ""
const rows = pages.flatMap((page) => seedRows(page, textOf(page)))
const tests = new Map<string, Set<string>>()

const learn = (names: ReadonlyMap<string, ReadonlySet<string>>): void => {
  for (const [path, some] of names) tests.set(path, new Set([...(tests.get(path) ?? []), ...some]))
}
const testsOf = (path: string): ReadonlySet<string> => tests.get(path) ?? new Set()

beforeAll(() => {
  const named = rows.flatMap((row) => row.tests).filter(({ path }) => files.has(path))
  learn(namesAsWritten([...new Set(named.map(({ path }) => path))]))
  const cases = named.filter(({ names, path }) => names.some((name) => !testsOf(path).has(name)))
  learn(namesAsRun([...new Set(cases.map(({ path }) => path))]))
})

describe("the tables of the designs", () => {
  it("name code that exists, and a test that exists for every row", () => {
    expect(seedFaults(rows, { file: (path) => files.get(path), testsOf })).toEqual([])
    reportCount("rows of the designs, each with its code and its test", rows.length)
    expect(rows.length).toBeGreaterThan(400)
  })

  it("wait for a test only where its file is not there", () => {
    const waiting = rows.filter(({ awaits }) => awaits !== undefined)
    const isThere = (pattern: string): boolean => {
      const [begin = "", end = ""] = pattern.split("*")
      return [...files.keys()].some((path) => path.startsWith(begin) && path.endsWith(end))
    }
    const late = waiting.filter(({ awaits = "" }) => isThere(awaits))
    expect(late.map(({ awaits, id }) => `${id}: ${awaits} is there; name the test`)).toEqual([])
    expect(waiting.map(({ id }) => id)).toEqual([])
  })

  it("leave out no test that is about the designs", () => {
    const named = new Set(rows.flatMap((row) => row.tests).flatMap(({ names }) => names))
    const all = [...namesAsRun(ownTests).values()].flatMap((names) => [...names])
    const about = all.filter((name) => /^(state machines|session) design: /.test(name))
    expect(about.length).toBeGreaterThan(150)
    expect(about.filter((name) => !named.has(name))).toEqual([])
  })

  it("are summed up: how many rows there are, which wait, and which differ", () => {
    const index = textOf("docs/SEEDS.md")
    for (const page of pages) expect(index).toContain(`| ${rows.filter((row) => row.page === page).length} rows, `)
    const told = codeSpans(index).filter((span) => /^S[23]-[A-Z]+-\d\d$/.test(span))
    const notable = rows.filter(({ awaits, differs }) => awaits !== undefined || differs)
    expect(told.toSorted()).toEqual(notable.map(({ id }) => id).toSorted())
  })
})

describe("a row that lies", () => {
  const source: SourceFile = {
    path: "src/a/A.ts",
    text: 'export const door = { open: "wide.open" }\ntype Wood = 1\n// const inComment = 1\nconst { part } = door\n'
  }
  const test: SourceFile = { path: "test/a/A.test.ts", text: "" }
  const around = {
    file: (path: string) => [source, test].find((file) => file.path === path),
    testsOf: (path: string) => new Set(path === test.path ? ["a door > opens", "a door > %s"] : [])
  }
  const page = (...lines: ReadonlyArray<string>): ReadonlyArray<SeedRow> =>
    seedRows("p", ["| id | a | b | c | d |", "|---|---|---|---|---|", ...lines].join("\n"))
  const line = (part: { id?: string; what?: string; code?: string; test?: string }): string => {
    const {
      code = "`src/a/A.ts` `door`",
      id = "S2-DOOR-01",
      test: shown = "`test/a/A.test.ts` `a door > opens`"
    } = part
    return `| ${id} | ${part.what ?? "A door opens."} | ${code} | ${shown} | |`
  }

  it.each<readonly [string, Parameters<typeof line>[0], RegExp | undefined]>([
    ["nothing", {}, undefined],
    ["nothing, with several files and tests", { code: "`src/a/A.ts` `door` `open`<br>`src/a/A.ts` `Wood`" }, undefined],
    ["nothing, with a text for a symbol", { code: "`src/a/A.ts` `wide.open`" }, undefined],
    ["nothing, with a test of many cases", { test: "`test/a/A.test.ts` `a door > %s`" }, undefined],
    ["nothing, waiting for a test", { test: "not yet: test/a/later*.test.ts" }, undefined],
    ["a source file that is gone", { code: "`src/a/B.ts` `door`" }, /there is no src\/a\/B\.ts/],
    ["no source file", { code: "somewhere" }, /names no source file/],
    ["no symbol", { code: "`src/a/A.ts`" }, /names nothing in src\/a\/A\.ts/],
    ["a symbol that is gone", { code: "`src/a/A.ts` `window`" }, /does not declare window/],
    ["a symbol in a comment", { code: "`src/a/A.ts` `inComment`" }, /does not declare inComment/],
    ["a test file that is gone", { test: "`test/a/B.test.ts` `a door > opens`" }, /there is no test file test\/a\/B/],
    ["a file that is no test", { test: "`src/a/A.ts` `door`" }, /there is no test file src\/a\/A\.ts/],
    ["a test that is gone", { test: "`test/a/A.test.ts` `a door > shuts`" }, /has no test "a door > shuts"/],
    ["a part of a name", { test: "`test/a/A.test.ts` `opens`" }, /has no test "opens"/],
    ["a case that is none", { test: "`test/a/A.test.ts` `a door > creaks`" }, /has no test "a door > creaks"/],
    ["a test file without a name", { test: "`test/a/A.test.ts`" }, /names no single test/],
    ["no test", { test: "" }, /names no test/],
    ["a promise of a test", { test: "not yet" }, /names no test/],
    ["no requirement", { what: " " }, /says nothing/],
    ["an id that is none", { id: "S4-DOOR-01" }, /is no id of a row/],
    ["a number that is skipped", { id: "S2-DOOR-02" }, /the row before it is 0/]
  ])("about %s is found out", (_name, part, fault) => {
    const faults = seedFaults(page(line(part)), around)
    expect(faults.length).toBe(fault === undefined ? 0 : 1)
    if (fault !== undefined) expect(faults[0]).toMatch(fault)
  })

  it("by having the id of another is found out", () => {
    expect(seedFaults(page(line({}), line({})), around)).toEqual(["S2-DOOR-01: the row before it is 1"])
  })

  it("is compared with what a file declares, not with what it mentions", () => {
    expect([...namesIn(source)].sort()).toEqual(["Wood", "door", "open", "part", "wide.open"])
  })
})
