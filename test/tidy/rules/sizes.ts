// How long files and functions may be. Both are measured as a reader scrolls: from the first line to the last.
import type { Rule } from "../Rule.ts"
import { type Finding, isProduct, lineAt, type Node, nodesOf, parse, type SourceFile } from "../Source.ts"
import { sizes } from "../tables.ts"

export interface Measured {
  readonly path: string
  readonly name: string
  readonly line: number
  readonly lines: number
}

const functionTypes = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"])

export const measureFunctions = (file: SourceFile): ReadonlyArray<Measured> =>
  [...nodesOf(file)]
    .filter(({ node }) => functionTypes.has(node.type))
    .map(({ node, parent }) => {
      const line = lineAt(file, node.start)
      return { path: file.path, name: nameOf(node, parent), line, lines: lineAt(file, node.end) - line + 1 }
    })

const nameOf = (node: Node, parent: Node): string => {
  const holder = [node["id"], parent["id"], parent["key"]].find((candidate) => isNamed(candidate))
  return isNamed(holder) ? holder.name : "a function"
}

const isNamed = (value: unknown): value is { readonly name: string } =>
  typeof value === "object" && value !== null && "name" in value && typeof value.name === "string"

export const measureFile = (file: SourceFile): Measured => ({
  path: file.path,
  name: file.path,
  line: 1,
  lines: file.text.trimEnd().split("\n").length
})

const fileFinding = (file: SourceFile): ReadonlyArray<Finding> => {
  const { path, lines } = measureFile(file)
  if (lines > sizes.fileLinesMax) return [{ path, fact: `has ${lines} lines; the most is ${sizes.fileLinesMax}` }]
  const isExplained = parse(file).comments.some(
    ({ value, end }) => lineAt(file, end) <= 20 && /\bLength:\s+\S/.test(value)
  )
  if (lines <= sizes.fileLinesExplained || isExplained) return []
  return [{ path, fact: `has ${lines} lines and no "Length:" in its header that says why` }]
}

const padded = (lines: number, header = ""): string => `${header}${"export {}\n".repeat(lines)}`
const longBody = (lines: number): string => "  work()\n".repeat(lines)

const fileSize: Rule = {
  name: "a file is short, or says in its header why not",
  check: (files) => files.filter(isProduct).flatMap(fileFinding),
  broken: [
    { tree: { "src/rune/A.ts": padded(501) }, fact: /has 501 lines and no "Length:"/ },
    { tree: { "src/rune/A.ts": padded(501, "// Length:\n") }, fact: /has 502 lines and no "Length:"/ },
    { tree: { "src/rune/A.ts": padded(500, 'const x = "Length: a lie"\n') }, fact: /has 501 lines/ },
    { tree: { "runelog/A.ts": padded(801, "// Length: one table\n") }, fact: /the most is 800/ }
  ],
  sound: [
    { "src/rune/A.ts": padded(500) },
    { "src/rune/A.ts": padded(600, "// Length: one table, read as one.\n") },
    { "test/a.test.ts": padded(2_000) }
  ]
}

const functionSize: Rule = {
  name: "a function fits on a page",
  check: (files) =>
    files
      .filter(isProduct)
      .flatMap(measureFunctions)
      .filter(({ lines }) => lines > sizes.functionLinesMax)
      .map(({ path, line, name, lines }) => ({
        path,
        line,
        fact: `${name} has ${lines} lines; the most is ${sizes.functionLinesMax}`
      })),
  broken: [
    { tree: { "src/rune/A.ts": `function work() {\n${longBody(69)}}` }, fact: /work has 71 lines/ },
    { tree: { "src/rune/A.ts": `const work = async () => {\n${longBody(70)}}` }, fact: /work has 72 lines/ },
    { tree: { "src/rune/A.ts": `class X {\n  work() {\n${longBody(70)}}\n}` }, fact: /work has 72 lines/ },
    { tree: { "src/rune/A.ts": `run(function* () {\n${longBody(70)}})` }, fact: /a function has 72 lines/ },
    { tree: { "src/rune/A.ts": `const table = { work: (x = "}") => {\n${longBody(70)}} }` }, fact: /work has 72 lines/ }
  ],
  sound: [
    { "src/rune/A.ts": `const work = () => {\n${longBody(68)}}` },
    { "src/rune/A.ts": `const a = () => {\n${longBody(40)}}\nconst b = () => {\n${longBody(40)}}` },
    { "src/rune/A.ts": `// function work() {\n${"// more\n".repeat(80)}const text = \`() => {\n${longBody(80)}}\`` },
    { "src/rune/A.ts": `class X {\n${"  work() {\n    return 1\n  }\n".repeat(40)}}` }
  ]
}

export const sizeRules: ReadonlyArray<Rule> = [fileSize, functionSize]
