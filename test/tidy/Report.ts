// Figures of the tree, printed by `npm run tidy`: how far each area stands on Effect, what it still does by hand, and what
// is too long. They are facts to read, not rules; the rules are beside them.
import { areaOf, unreachable } from "./rules/imports.ts"
import { type Measured, measureFile, measureFunctions } from "./rules/sizes.ts"
import { dottedName, importsOf, isProduct, nodesOf, type SourceFile } from "./Source.ts"
import { plainAreas } from "./tables.ts"

interface AreaFigures {
  files: number
  lines: number
  onEffect: number
  services: number
  layers: number
  timers: number
  asyncs: number
  nonNulls: number
}

const nothing = (): AreaFigures => ({
  files: 0,
  lines: 0,
  onEffect: 0,
  services: 0,
  layers: 0,
  timers: 0,
  asyncs: 0,
  nonNulls: 0
})

const importsEffect = (file: SourceFile): boolean =>
  importsOf(file).some(({ specifier }) => specifier.startsWith("effect/"))

const layerMakers = /^Layer\.(effect|succeed|sync|unwrap|effectDiscard|effectContext|mergeAll|suspend)$/

const count = (file: SourceFile, into: AreaFigures): void => {
  into.files += 1
  into.lines += measureFile(file).lines
  if (importsEffect(file)) into.onEffect += 1
  for (const { node } of nodesOf(file)) {
    const called = node.type === "CallExpression" ? dottedName(node["callee"]) : undefined
    if (called === "setTimeout" || called === "setInterval") into.timers += 1
    if (called === "Context.Service") into.services += 1
    if (called !== undefined && layerMakers.test(called)) into.layers += 1
    if (node["async"] === true) into.asyncs += 1
    if (node.type === "TSNonNullExpression") into.nonNulls += 1
  }
}

const figuresByArea = (files: ReadonlyArray<SourceFile>): ReadonlyMap<string, AreaFigures> => {
  const areas = new Map<string, AreaFigures>()
  for (const file of files.filter(isProduct)) {
    const area = areaOf(file.path)
    const figures = areas.get(area) ?? nothing()
    areas.set(area, figures)
    count(file, figures)
  }
  return new Map([...areas].sort(([left], [right]) => (left < right ? -1 : 1)))
}

const columns = ["files", "lines", "onEffect", "services", "layers", "timers", "asyncs", "nonNulls"] as const

const row = (name: string, figures: AreaFigures): string => {
  const share = figures.files === 0 ? 0 : Math.round((100 * figures.onEffect) / figures.files)
  const cells = columns.map((column) => String(figures[column]).padStart(9))
  return `${name.padEnd(14)}${cells.join("")}${`${share} %`.padStart(8)}`
}

const sum = (all: Iterable<AreaFigures>): AreaFigures => {
  const total = nothing()
  for (const figures of all) for (const column of columns) total[column] += figures[column]
  return total
}

const spread = (what: string, measured: ReadonlyArray<Measured>): string => {
  const sorted = measured.toSorted((a, b) => a.lines - b.lines)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]?.lines ?? 0
  const longest = sorted.at(-1)
  const where =
    longest === undefined ? "none" : `${longest.lines} (${longest.path}${what === "files" ? "" : ` ${longest.name}`})`
  return `size of ${what}: ${sorted.length}, lines median ${at(0.5)}, p90 ${at(0.9)}, longest ${where}`
}

/** Lines for people. Areas that are plain code by decision are marked with a star and left out of the second total. */
export const report = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> => {
  const areas = figuresByArea(files)
  const framed = [...areas].filter(([area]) => !plainAreas.has(area)).map(([, figures]) => figures)
  const product = files.filter(isProduct)
  const titles = columns.map((column) => column.padStart(9)).join("")
  return [
    `${"area".padEnd(14)}${titles}${"share".padStart(8)}`,
    ...[...areas].map(([area, figures]) => row(plainAreas.has(area) ? `${area} *` : area, figures)),
    row("all", sum(areas.values())),
    row("without *", sum(framed)),
    `unreachable files: ${unreachable(files).length}`,
    spread("files", product.map(measureFile)),
    spread("functions", product.flatMap(measureFunctions))
  ]
}
