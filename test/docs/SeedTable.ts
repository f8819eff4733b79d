// The tables of the designs that ECHS was built from, as data, and what can be wrong with a row: a file that is not there,
// a symbol that its file does not declare, a test that vitest does not list, no test at all. Pure but for one function,
// which asks vitest for the names of tests.
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { nodesOf, type SourceFile, top } from "../tidy/Source.ts"
import { codeSpans, tableRows } from "./Markdown.ts"

export interface Reference {
  readonly path: string
  /** Symbols of a source file, or names of tests. */
  readonly names: ReadonlyArray<string>
}

export interface SeedRow {
  readonly page: string
  readonly id: string
  readonly requirement: string
  readonly code: ReadonlyArray<Reference>
  readonly tests: ReadonlyArray<Reference>
  /** The file in which a test is expected that is not there yet. */
  readonly awaits: string | undefined
  /** ECHS does it otherwise, and the remarks say why. */
  readonly differs: boolean
}

const isPath = (span: string): boolean => /^(src|runelog|test)\/[\w./-]+\.ts$/.test(span)

/** Each path with the code spans behind it. */
const referencesIn = (cell: string): ReadonlyArray<Reference> =>
  cell.split("<br>").flatMap((line) => {
    const [path = "", ...names] = codeSpans(line)
    return isPath(path) ? [{ path, names }] : []
  })

/** The rows of a page; a line of a table that is no row and no heading is a fault of the page. */
export const seedRows = (page: string, text: string): ReadonlyArray<SeedRow> =>
  tableRows(text)
    .filter(([id]) => id !== "id")
    .map(([id = "", requirement = "", code = "", tests = "", remarks = ""]) => ({
      page,
      id,
      requirement,
      code: referencesIn(code),
      tests: referencesIn(tests),
      awaits: /^not yet: (test\/\S+)$/.exec(tests)?.[1],
      differs: remarks.startsWith("Differs: ")
    }))

/** Everything that a source file gives a name to: declarations, keys, and texts such as the kinds of runes. */
export const namesIn = (file: SourceFile): ReadonlySet<string> => {
  const names = new Set<string>()
  for (const { node } of nodesOf(file)) {
    const { id, key, value } = node as { readonly [part: string]: unknown }
    for (const part of [id, key]) {
      const name = (part as { readonly name?: unknown } | undefined | null)?.name
      if (typeof name === "string") names.add(name)
    }
    if (node.type === "Literal" && typeof value === "string") names.add(value)
  }
  return names
}

export interface Surroundings {
  readonly file: (path: string) => SourceFile | undefined
  /** The names of the tests of a file. */
  readonly testsOf: (path: string) => ReadonlySet<string>
}

const codeFaults = ({ code }: SeedRow, { file }: Surroundings): ReadonlyArray<string> => {
  if (code.length === 0) return ["names no source file"]
  return code.flatMap(({ names, path }) => {
    const found = file(path)
    if (found === undefined) return [`there is no ${path}`]
    if (names.length === 0) return [`names nothing in ${path}`]
    const declared = namesIn(found)
    return names.filter((name) => !declared.has(name)).map((name) => `${path} does not declare ${name}`)
  })
}

const testFaults = ({ awaits, tests }: SeedRow, { file, testsOf }: Surroundings): ReadonlyArray<string> => {
  if (tests.length === 0) return awaits === undefined ? ["names no test"] : []
  return tests.flatMap(({ names, path }) => {
    if (!path.endsWith(".test.ts") || file(path) === undefined) return [`there is no test file ${path}`]
    const [name] = names
    if (name === undefined || names.length > 1) return [`names no single test of ${path}`]
    return testsOf(path).has(name) ? [] : [`${path} has no test "${name}"`]
  })
}

const idFaults = (rows: ReadonlyArray<SeedRow>): ReadonlyArray<string> => {
  const last = new Map<string, number>()
  return rows.flatMap(({ id }) => {
    const [, group, number] = /^(S[23]-[A-Z]+)-(\d\d)$/.exec(id) ?? []
    if (group === undefined) return [`"${id}" is no id of a row`]
    const before = last.get(group) ?? 0
    last.set(group, Number(number))
    return Number(number) === before + 1 ? [] : [`${id}: the row before it is ${before}`]
  })
}

/** What is wrong with the tables, each fault with its row. */
export const seedFaults = (rows: ReadonlyArray<SeedRow>, around: Surroundings): ReadonlyArray<string> => [
  ...idFaults(rows),
  ...rows.flatMap((row) => [
    ...(row.requirement === "" ? [`${row.id}: says nothing`] : []),
    ...[...codeFaults(row, around), ...testFaults(row, around)].map((fault) => `${row.id}: ${fault}`)
  ])
]

const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs")

const listed = (
  paths: ReadonlyArray<string>,
  args: ReadonlyArray<string>
): ReadonlyMap<string, ReadonlySet<string>> => {
  const place = mkdtempSync(join(tmpdir(), "echs-seeds-"))
  try {
    const output = join(place, "tests.json")
    const run = spawnSync(process.execPath, [vitest, "list", `--json=${output}`, ...args, ...paths], {
      cwd: top,
      encoding: "utf8"
    })
    if (run.status !== 0) throw new Error(`vitest lists no tests: ${run.stderr}${run.stdout}`)
    const names = new Map<string, Set<string>>()
    const tests: ReadonlyArray<{ readonly file: string; readonly name: string }> = JSON.parse(
      readFileSync(output, "utf8")
    )
    for (const { file, name } of tests) {
      const path = file.slice(top.length + 1).replaceAll("\\", "/")
      names.set(path, (names.get(path) ?? new Set()).add(name))
    }
    return names
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

/** Names as the files have them: a test of many cases by its template, such as "%s × %s". */
export const namesAsWritten = (paths: ReadonlyArray<string>) => listed(paths, [])

/** Names as they run: every case by its own. Takes longer, because the files are executed up to their tests. */
export const namesAsRun = (paths: ReadonlyArray<string>) => listed(paths, ["--no-static-parse"])
