// The tree as tidy rules see it: text files with their paths, and syntax trees of the ones that are code. Reading
// happens here; rules are pure functions over what was read, so that each can be shown a tree that breaks it.
import { readdirSync, readFileSync } from "node:fs"
import { dirname, extname, join, posix } from "node:path"
import { fileURLToPath } from "node:url"
import { type ParseResult, parseSync } from "vite"

export interface SourceFile {
  /** From the top of the project, with "/" between the parts. */
  readonly path: string
  readonly text: string
}

export interface Finding {
  readonly path: string
  readonly line?: number
  readonly fact: string
}

export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

export interface Import {
  readonly specifier: string
  readonly line: number
  readonly names: ReadonlyArray<string>
}

export const top = join(dirname(fileURLToPath(import.meta.url)), "..", "..")

const unread = new Set([".git", "node_modules", "dist", "coverage", ".echs"])
const textExtensions = new Set([".ts", ".tsx", ".js", ".mjs", ".json", ".md", ".html", ".css", ".yml", ".toml", ""])

/** Every file that git would see, except the lockfile's text; what is not text is there with an empty one. */
export const readTree = (directory = top, prefix = ""): ReadonlyArray<SourceFile> =>
  readdirSync(directory, { withFileTypes: true }).flatMap((entry): ReadonlyArray<SourceFile> => {
    const path = posix.join(prefix, entry.name)
    if (unread.has(entry.name) || /\.(log|tsbuildinfo)$/.test(entry.name)) return []
    if (entry.isDirectory()) return readTree(join(directory, entry.name), path)
    const isText = entry.isFile() && textExtensions.has(extname(entry.name)) && entry.name !== "package-lock.json"
    return [{ path, text: isText ? readFileSync(join(directory, entry.name), "utf8") : "" }]
  })

export const isCode = (file: SourceFile): boolean => /\.(ts|tsx|js|mjs)$/.test(file.path)

/** What ships: the code of the product, as opposed to that of its tests. */
export const isProduct = (file: SourceFile): boolean => isCode(file) && /^(src|runelog)\//.test(file.path)

export const isTest = (file: SourceFile): boolean => /^test\/.*\.test\.tsx?$/.test(file.path)

const parsed = new WeakMap<SourceFile, ParseResult>()

export const parse = (file: SourceFile): ParseResult => {
  const known = parsed.get(file)
  if (known !== undefined) return known
  const result = parseSync(file.path, file.text)
  parsed.set(file, result)
  return result
}

export const lineAt = (file: SourceFile, offset: number): number => file.text.slice(0, offset).split("\n").length

/** Every node below this one, itself included, each with the node it hangs on. */
export const nodesOf = function* (file: SourceFile): Generator<{ readonly node: Node; readonly parent: Node }> {
  const root = parse(file).program as unknown as Node
  const open = [{ node: root, parent: root }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    yield next
    const { node } = next
    for (const value of Object.values(node)) {
      for (const child of Array.isArray(value) ? value : [value])
        if (isNode(child)) open.push({ node: child, parent: node })
    }
  }
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string" && "start" in value

/** `a.b.c` of a chain of plain members, undefined for anything else. */
export const dottedName = (node: unknown): string | undefined => {
  if (!isNode(node)) return undefined
  if (node.type === "Identifier") return String(node["name"])
  if (node.type !== "MemberExpression" || !isNode(node["property"])) return undefined
  const object = dottedName(node["object"])
  const property = node["property"]
  if (object === undefined) return undefined
  if (node["computed"] === true) return property.type === "Literal" ? `${object}.${property["value"]}` : undefined
  return `${object}.${property["name"]}`
}

/** Static and dynamic imports and re-exports, types included. */
export const importsOf = (file: SourceFile): ReadonlyArray<Import> => {
  const { module } = parse(file)
  const fromImports = module.staticImports.map((statement) => ({
    specifier: statement.moduleRequest.value,
    line: lineAt(file, statement.start),
    names: statement.entries.map((entry) => entry.importName.name ?? "*")
  }))
  const fromExports = module.staticExports.flatMap((statement) =>
    statement.entries.flatMap(({ moduleRequest }) =>
      moduleRequest ? [{ specifier: moduleRequest.value, line: lineAt(file, statement.start), names: ["*"] }] : []
    )
  )
  const fromCalls = module.dynamicImports.flatMap(({ start, moduleRequest }) => {
    const literal = /^["'`]([^"'`$]*)["'`]$/.exec(file.text.slice(moduleRequest.start, moduleRequest.end))
    return literal?.[1] === undefined ? [] : [{ specifier: literal[1], line: lineAt(file, start), names: ["*"] }]
  })
  return [...fromImports, ...fromExports, ...fromCalls]
}

/** The path inside the project that an import leads to; undefined for a package or a builtin. */
export const resolveImport = (from: SourceFile, specifier: string): string | undefined => {
  if (specifier.startsWith(".")) return posix.join(posix.dirname(from.path), specifier)
  return specifier.startsWith("#") ? specifier.slice(1) : undefined
}
