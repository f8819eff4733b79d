// What files say: a header in each, no unfinished words, no silenced checks, no path of anybody's machine, decisions
// that carry their date, versions that are pinned, and nothing at the top that was not agreed.
import type { Rule } from "../Rule.ts"
import { type Finding, isCode, isProduct, parse, type SourceFile } from "../Source.ts"
import { requiredTopEntries, topEntries } from "../tables.ts"

/** Findings for every line that matches; the fact is made of what matched. */
const lineFindings = (file: SourceFile, pattern: RegExp, fact: (match: string) => string): ReadonlyArray<Finding> =>
  file.text.split("\n").flatMap((text, index) => {
    const match = pattern.exec(text)
    return match === null ? [] : [{ path: file.path, line: index + 1, fact: fact(match[0]) }]
  })

const hasHeader = (file: SourceFile): boolean => {
  const text = file.text.replace(/^#!.*\n/, "")
  const first = parse(file).comments.find(({ value }) => !file.text.startsWith(`#!${value}`))
  const startsWithComment = /^\s*\/[/*]/.test(text)
  return startsWithComment && first !== undefined && first.value.replace(/[\s*/]/g, "").length >= 20
}

const headers: Rule = {
  name: "every source file begins by saying what it owns",
  check: (files) =>
    files
      .filter((file) => isCode(file) && !hasHeader(file))
      .map(({ path }) => ({ path, fact: "has no header comment" })),
  broken: [
    { tree: { "src/rune/A.ts": "export const a = 1" }, fact: /no header/ },
    { tree: { "src/rune/A.ts": "//\nexport const a = 1" }, fact: /no header/ },
    { tree: { "test/a.test.ts": 'import "x"\n// Says what it owns, but too late.' }, fact: /no header/ },
    { tree: { "src/cli/a.js": "#!/usr/bin/env node\nexport const a = 1" }, fact: /no header/ }
  ],
  sound: [
    { "src/rune/A.ts": "// The letters of the alphabet, in order.\nexport const a = 1" },
    { "src/rune/A.ts": "/**\n * The letters of the alphabet, in order.\n */\nexport const a = 1" },
    { "src/cli/a.js": "#!/usr/bin/env node\n// The letters of the alphabet, in order.\nexport const a = 1" }
  ]
}

const unfinished = new RegExp(
  `\\b(${["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK", "not imple" + "mented", "st" + "ub"].join("|")})\\b`,
  "i"
)

const finished: Rule = {
  name: "nothing is marked as unfinished",
  check: (files) =>
    files.filter(isProduct).flatMap((file) => lineFindings(file, unfinished, (word) => `says "${word}"`)),
  broken: [
    { tree: { "src/rune/A.ts": `// ${"TO" + "DO"}: write it` }, fact: /says/ },
    { tree: { "runelog/A.ts": `throw new Error("${"Not imple" + "mented"}")` }, fact: /says/ },
    { tree: { "runelog/A.ts": `const ${"st" + "ub"} = 1` }, fact: /says/ }
  ],
  sound: [{ "src/rune/A.ts": "const stubborn = 1 // todos of a person" }]
}

const silenced = new RegExp(`\\bas ${"an" + "y"}\\b|@ts-(ignore|expect-error|nocheck)|biome-${"ignore"}|eslint-disable`)

const nothingSilenced: Rule = {
  name: "no check is silenced",
  check: (files) =>
    files.filter(isProduct).flatMap((file) => lineFindings(file, silenced, (match) => `has "${match}"`)),
  broken: [
    { tree: { "src/rune/A.ts": `const a = b as ${"an" + "y"}` }, fact: /has/ },
    { tree: { "src/rune/A.ts": `// @ts-${"ignore"}` }, fact: /has/ },
    { tree: { "runelog/A.ts": `// biome-${"ignore"} lint: no` }, fact: /has/ }
  ],
  sound: [{ "src/rune/A.ts": "const a = b as const // as anybody would" }]
}

// Written in pieces, or this file would be its own finding.
const machinePath = new RegExp(`(?<![\\w.~$}-])/(${["wor" + "k", "tm" + "p", "roo" + "t"].join("|")})/[A-Za-z]`)

const noMachinePaths: Rule = {
  name: "no file names a path of somebody's machine",
  check: (files) =>
    files.flatMap((file) => lineFindings(file, machinePath, (match) => `names a path that begins ${match}`)),
  broken: [
    { tree: { "docs/A.md": `see ${"/wor" + "k"}/main` }, fact: /names a path/ },
    { tree: { "src/rune/A.ts": `const directory = "${"/tm" + "p"}/echs"` }, fact: /names a path/ },
    { tree: { "README.md": `cd ${"/roo" + "t"}/project` }, fact: /names a path/ }
  ],
  sound: [
    {
      "docs/A.md": `~${"/wor" + "k"}/x, https://example.org${"/wor" + "k"}/page, src${"/tm" + "p"}/file, a work/life balance`
    }
  ]
}

const decisionFacts = (file: SourceFile): ReadonlyArray<string> => {
  const name = file.path.split("/").at(-1) ?? ""
  const facts: Array<string> = []
  if (!/^\d{4}-[a-z0-9-]+\.md$/.test(name)) facts.push("is not named NNNN-what-was-decided.md")
  if (!/^# \d{4} · \S/.test(file.text)) facts.push('does not begin with "# NNNN · title"')
  else if (file.text.slice(2, 6) !== name.slice(0, 4)) facts.push("has one number in its name and another in its title")
  if (!/^Date: \d{4}-\d{2}-\d{2}$/m.test(file.text)) facts.push('has no "Date: YYYY-MM-DD"')
  if (!/^Status: (accepted|replaced by \d{4})$/m.test(file.text))
    facts.push('has no "Status: accepted" (or "replaced by NNNN")')
  return facts
}

const decision = (changes: Readonly<Record<string, string>>): string =>
  ["# 0001 · Use a log", "", "Date: 2026-11-16", "Status: accepted", "", "Because."]
    .map((line) => changes[line] ?? line)
    .join("\n")

const decisions: Rule = {
  name: "a decision has a number, a title, a date and a status",
  check: (files) =>
    files
      .filter(({ path }) => path.startsWith("docs/decisions/"))
      .flatMap((file) => decisionFacts(file).map((fact) => ({ path: file.path, fact }))),
  broken: [
    { tree: { "docs/decisions/log.md": decision({}) }, fact: /not named/ },
    {
      tree: { "docs/decisions/0001-log.md": decision({ "# 0001 · Use a log": "# Use a log" }) },
      fact: /does not begin/
    },
    { tree: { "docs/decisions/0002-log.md": decision({}) }, fact: /another in its title/ },
    { tree: { "docs/decisions/0001-log.md": decision({ "Date: 2026-11-16": "" }) }, fact: /no "Date/ },
    { tree: { "docs/decisions/0001-log.md": decision({ "Status: accepted": "Status: perhaps" }) }, fact: /no "Status/ }
  ],
  sound: [{ "docs/decisions/0001-use-a-log.md": decision({}) }]
}

const pinFindings = (file: SourceFile): ReadonlyArray<Finding> => {
  const manifest: Readonly<Record<string, Readonly<Record<string, string>> | undefined>> = JSON.parse(file.text)
  const groups = ["dependencies", "devDependencies", "optionalDependencies", "overrides"]
  return groups
    .flatMap((group) => Object.entries(manifest[group] ?? {}))
    .filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
    .map(([name, version]) => ({ path: file.path, fact: `${name} is "${version}", not one exact version` }))
}

const pinned: Rule = {
  name: "every dependency is pinned to one version",
  check: (files) => files.filter(({ path }) => path === "package.json").flatMap(pinFindings),
  broken: [
    { tree: { "package.json": '{ "dependencies": { "effect": "^4.1.0" } }' }, fact: /effect is "\^4\.1\.0"/ },
    { tree: { "package.json": '{ "devDependencies": { "vitest": "latest" } }' }, fact: /vitest is "latest"/ }
  ],
  sound: [{ "package.json": '{ "dependencies": { "effect": "4.1.0" }, "devDependencies": { "x": "4.0.0-rc.118" } }' }]
}

const topFindings = (files: ReadonlyArray<SourceFile>): ReadonlyArray<Finding> => {
  const entries = new Set(files.map(({ path }) => path.split("/")[0] ?? ""))
  const extra = [...entries].filter((entry) => !topEntries.has(entry))
  const missing = requiredTopEntries.filter((entry) => !entries.has(entry))
  return [
    ...extra.map((path) => ({ path, fact: "is not an agreed entry of the top level" })),
    ...missing.map((path) => ({ path, fact: "is missing from the top level" }))
  ]
}

const agreedTop = Object.fromEntries(
  requiredTopEntries.map((entry) => [entry.includes(".") || entry === "LICENSE" ? entry : `${entry}/a.md`, ""])
)

const topLevel: Rule = {
  name: "the top level holds what was agreed",
  check: topFindings,
  broken: [
    { tree: { ...agreedTop, "scripts/a.ts": "" }, fact: /not an agreed entry/ },
    { tree: Object.fromEntries(Object.entries(agreedTop).filter(([path]) => path !== "LICENSE")), fact: /is missing/ }
  ],
  sound: [agreedTop]
}

const unparsable: Rule = {
  name: "every source file parses",
  check: (files) =>
    files
      .filter(isCode)
      .flatMap((file) =>
        parse(file).errors.map(({ message }) => ({ path: file.path, fact: `does not parse: ${message}` }))
      ),
  broken: [{ tree: { "src/rune/A.ts": "const = 1" }, fact: /does not parse/ }],
  sound: [{ "src/rune/A.ts": "const a: number = 1" }]
}

export const textRules: ReadonlyArray<Rule> = [
  unparsable,
  headers,
  finished,
  nothingSilenced,
  noMachinePaths,
  decisions,
  pinned,
  topLevel
]
