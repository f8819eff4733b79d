// Who may import whom: areas one way, no cycles, no door to the machine but the agreed ones.
import type { Rule } from "../Rule.ts"
import { isListed } from "../Rule.ts"
import { type Finding, importsOf, isProduct, resolveImport, type SourceFile } from "../Source.ts"
import { directions, entryPoints, freeBuiltins, freePackages, mayImport, permissions } from "../tables.ts"

/** "runelog/Frame.ts" → runelog, "src/rune/Ids.ts" → rune, "src/main.ts" → main. */
export const areaOf = (path: string): string => {
  const [first = "", second = ""] = path.split("/")
  return first === "src" ? second.replace(/\.(ts|js)$/, "") : first
}

const directionFindings = (file: SourceFile): ReadonlyArray<Finding> => {
  const from = areaOf(file.path)
  if (directions[from] === undefined)
    return [{ path: file.path, fact: `area "${from}" is not in the table of directions` }]
  return importsOf(file).flatMap(({ specifier, line }) => {
    const target = resolveImport(file, specifier)
    if (target === undefined || isLauncherToBuild(file, target)) return []
    const to = areaOf(target)
    if (!mayImport(from, to)) return [{ path: file.path, line, fact: `${from} may not import ${to}` }]
    const crossesTop = file.path.split("/")[0] !== target.split("/")[0]
    if (crossesTop && !specifier.startsWith("#"))
      return [{ path: file.path, line, fact: `reaches ${target} without its # name` }]
    return []
  })
}

/** The launcher starts the program, from its source or from what was built of it. */
const isLauncherToBuild = (file: SourceFile, target: string): boolean =>
  file.path === "src/cli/echs.js" && ["src/main.ts", "dist/src/main.js"].includes(target)

const importDirection: Rule = {
  name: "imports go one way",
  check: (files) => files.filter(isProduct).flatMap(directionFindings),
  broken: [
    { tree: { "src/rune/A.ts": 'import "../machine/B.ts"' }, fact: /rune may not import machine/ },
    { tree: { "src/cli/a.ts": 'import type { X } from "#runelog/disk/Disk.ts"' }, fact: /cli may not import runelog/ },
    { tree: { "src/cli/a.ts": 'export const x = () => import("../server/B.ts")' }, fact: /cli may not import server/ },
    { tree: { "runelog/A.ts": 'export * from "#src/rune/B.ts"' }, fact: /runelog may not import rune/ },
    { tree: { "src/store/A.ts": 'import "../../test/support/counts.ts"' }, fact: /store may not import test/ },
    { tree: { "src/store/A.ts": 'import "../../runelog/Disk.ts"' }, fact: /without its # name/ },
    { tree: { "src/attic/A.ts": "export {}" }, fact: /"attic" is not in the table/ }
  ],
  sound: [
    {
      "src/store/A.ts": 'import "#runelog/disk/Disk.ts"\nimport "../rune/B.ts"\nimport "./C.ts"\nimport "effect/Effect"'
    },
    { "src/main.ts": 'const x = () => import("./server/A.ts")' },
    { "src/rune/A.ts": '// import "../machine/B.ts"\nconst text = `import "../machine/B.ts"`' },
    { "test/a.test.ts": 'import "../src/server/A.ts"' }
  ]
}

const findCycles = (files: ReadonlyArray<SourceFile>): ReadonlyArray<ReadonlyArray<string>> => {
  const targets = new Map(
    files.map((file) => [file.path, importsOf(file).flatMap(({ specifier }) => resolveImport(file, specifier) ?? [])])
  )
  const cycles: Array<ReadonlyArray<string>> = []
  const done = new Set<string>()
  const visit = (path: string, trail: ReadonlyArray<string>): void => {
    if (trail.includes(path)) return void cycles.push([...trail.slice(trail.indexOf(path)), path])
    if (done.has(path)) return
    for (const target of targets.get(path) ?? []) visit(target, [...trail, path])
    done.add(path)
  }
  for (const path of targets.keys()) visit(path, [])
  return cycles
}

const noCycles: Rule = {
  name: "no file imports itself through others",
  check: (files) =>
    findCycles(files.filter(isProduct)).map((cycle) => ({ path: cycle[0] ?? "", fact: `cycle ${cycle.join(" → ")}` })),
  broken: [
    { tree: { "src/a/A.ts": 'import "./B.ts"', "src/a/B.ts": 'import "./A.ts"' }, fact: /A\.ts → .*B\.ts → .*A\.ts/ },
    {
      tree: {
        "runelog/A.ts": 'import "./B.ts"',
        "runelog/B.ts": 'import "./C.ts"',
        "runelog/C.ts": 'import "#runelog/B.ts"'
      },
      fact: /cycle runelog\/B\.ts → runelog\/C\.ts → runelog\/B\.ts/
    },
    { tree: { "runelog/A.ts": 'import type { A } from "./A.ts"' }, fact: /A\.ts → runelog\/A\.ts/ }
  ],
  sound: [
    { "src/a/A.ts": 'import "./B.ts"\nimport "./C.ts"', "src/a/B.ts": 'import "./C.ts"', "src/a/C.ts": "export {}" }
  ]
}

const packageOf = (specifier: string): string =>
  specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/")

const outsideFinding = (file: SourceFile, specifier: string): string | undefined => {
  if (resolveImport(file, specifier) !== undefined || freeBuiltins.has(specifier)) return undefined
  const name = specifier.startsWith("node:") ? specifier : packageOf(specifier)
  const rules = permissions.filter(({ modules }) => modules.includes(name))
  if (rules.some(({ allowed }) => isListed(file.path, allowed))) return undefined
  if (rules.length > 0) return `may not reach ${rules.map(({ reaches }) => reaches).join(" or ")} through ${name}`
  if (!freePackages.includes(name)) return `${name} is not in the table of what the product may import`
  return specifier === name ? `imports all of ${name}; take it by subpath, "${name}/…"` : undefined
}

const agreedDoors: Rule = {
  name: "files, processes, the network and packages are reached only where agreed",
  check: (files) =>
    files.filter(isProduct).flatMap((file) =>
      importsOf(file).flatMap(({ specifier, line }) => {
        const fact = outsideFinding(file, specifier)
        return fact === undefined ? [] : [{ path: file.path, line, fact }]
      })
    ),
  broken: [
    { tree: { "src/machine/A.ts": 'import { readFile } from "node:fs/promises"' }, fact: /may not reach files/ },
    { tree: { "src/server/A.ts": 'import { spawn } from "node:child_process"' }, fact: /may not reach processes/ },
    { tree: { "src/tool/A.ts": 'import * as net from "node:net"' }, fact: /may not reach the network/ },
    { tree: { "src/turn/A.ts": 'const load = () => import("openai")' }, fact: /may not reach a provider/ },
    { tree: { "runelog/A.ts": 'import { open } from "lmdb"' }, fact: /lmdb is not in the table/ },
    { tree: { "src/store/A.ts": 'import { Effect } from "effect"' }, fact: /take it by subpath/ },
    { tree: { "src/store/A.ts": 'import "@scope/name/sub"' }, fact: /@scope\/name is not in the table/ }
  ],
  sound: [
    { "src/tool/A.ts": 'import { spawn } from "node:child_process"\nimport { open } from "node:fs/promises"' },
    { "runelog/A.ts": 'import * as Data from "effect/Data"\nimport { join } from "node:path"' },
    { "test/a.test.ts": 'import "node:child_process"' }
  ]
}

/** Modules that are started by their address: threads, and what the launcher runs. */
const addressed = /["'](\.{1,2}\/[\w./-]+\.(?:ts|js))["']/g

const linksOf = (file: SourceFile): ReadonlyArray<string> => [
  ...importsOf(file).flatMap(({ specifier }) => resolveImport(file, specifier) ?? []),
  ...[...file.text.matchAll(addressed)].flatMap(([, specifier = ""]) => resolveImport(file, specifier) ?? [])
]

/** Files that no entry of the package leads to, the entries being those that exist in the tree. */
export const unreachable = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> => {
  const product = new Map(files.filter(isProduct).map((file) => [file.path, file]))
  const reached = new Set<string>()
  const open = entryPoints.filter((path) => product.has(path))
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const file = product.get(path)
    if (file === undefined || reached.has(path)) continue
    reached.add(path)
    open.push(...linksOf(file))
  }
  return [...product.keys()].filter((path) => !reached.has(path))
}

const nothingUnreachable: Rule = {
  name: "every source file is reached from an entry of the package",
  check: (files) =>
    unreachable(files).map((path) => ({ path, fact: "no entry leads here: connect it, or move it under test/" })),
  broken: [
    {
      tree: { "src/main.ts": "// entry", "src/rune/A.ts": "export {}" },
      fact: /src\/rune\/A\.ts: no entry leads here/
    },
    {
      tree: { "src/main.ts": "// entry", "src/a/A.ts": 'import "./B.ts"', "src/a/B.ts": 'import "./A.ts"' },
      fact: /src\/a\/B\.ts: no entry/
    }
  ],
  sound: [
    {
      "src/main.ts": 'import "./a/A.ts"',
      "src/a/A.ts": 'const load = () => import("./B.ts")',
      "src/a/B.ts": "export {}"
    },
    { "src/main.ts": 'new Worker(new URL("./a/Thread.ts", import.meta.url))', "src/a/Thread.ts": "export {}" },
    { "src/main.ts": "// entry", "test/a.test.ts": "export {}" }
  ]
}

export const importRules: ReadonlyArray<Rule> = [importDirection, noCycles, agreedDoors, nothingUnreachable]
