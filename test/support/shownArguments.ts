// Reads back what a question showed: from the rows below "arguments" the arguments themselves. Written from the
// description in docs/CLI.md and sharing nothing with the code that shows them.

const unescaped = (text: string): string =>
  text.replace(/\\(?:\\|t|r|n|x([\da-f]{2})|u\{([\da-f]+)\})/g, (found, byte: string, code: string) => {
    const named: Readonly<Record<string, string>> = { "\\\\": "\\", "\\t": "\t", "\\r": "\r", "\\n": "\n" }
    return named[found] ?? String.fromCodePoint(Number.parseInt(byte ?? code, 16))
  })

/** A row of JSON that goes on below: only the space that ends it is an escape of ours, `\x` is none of JSON's. */
const continued = (row: string): string => row.replace(/\\x20|\\[^x]/g, (found) => (found === "\\x20" ? " " : found))

type Step = string | number

const stepsOf = (path: string): ReadonlyArray<Step> => {
  if (path === "(value)") return []
  const steps: Array<Step> = []
  for (const [whole, bare, index, key] of path.matchAll(/\.?([A-Za-z_][\w-]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/gu)) {
    if (whole === "") throw new Error(`no path: ${path}`)
    steps.push(bare ?? (index === undefined ? String(JSON.parse(key ?? "")) : Number(index)))
  }
  return steps
}

class Building {
  root: unknown

  put(steps: ReadonlyArray<Step>, value: unknown): void {
    if (steps.length === 0) {
      this.root = value
      return
    }
    this.root ??= typeof steps[0] === "number" ? [] : {}
    let at = this.root
    steps.forEach((step, depth) => {
      const next = steps[depth + 1]
      const isLast = next === undefined
      const held = at as Record<string, unknown>
      if (isLast || !Object.hasOwn(held, step))
        Object.defineProperty(held, step, {
          value: isLast ? value : typeof next === "number" ? [] : {},
          enumerable: true,
          configurable: true,
          writable: true
        })
      at = held[step]
    })
  }
}

const pathPattern = /^(\(value\)|(?:\.?[A-Za-z_][\w-]*|\[\d+\]|\["(?:[^"\\]|\\.)*"\])+)(: | = |:$)/u

interface Row {
  text: string
  /** Lines of a text that stand below it. */
  readonly lines: Array<string>
}

const rowsOf = (shown: string): ReadonlyArray<Row> => {
  const all = shown.split("\n")
  const from = all.findIndex((row) => /^ {2}arguments(: none)?$/.test(row))
  if (from < 0) throw new Error("no arguments are shown")
  const rows: Array<Row> = []
  for (const line of all.slice(from + 1)) {
    if (!line.startsWith("    ")) break
    const row = line.slice(4)
    const last = rows.at(-1)
    if (row === "│" || row.startsWith("│ ")) last?.lines.push(row.slice(2))
    else if (row.startsWith("┆ ") && last !== undefined) {
      if (last.lines.length === 0) last.text = `${continued(last.text)}${row.slice(2)}`
      else last.lines.push(`${last.lines.pop() ?? ""}${row.slice(2)}`)
    } else rows.push({ text: row, lines: [] })
  }
  return rows
}

/** The arguments as somebody who sees only this text would take them down. */
export const readArguments = (shown: string): unknown => {
  const building = new Building()
  const rows = rowsOf(shown)
  if (rows.length === 0) return {}
  for (const { lines, text: joined } of rows) {
    const [, path = "", sign = ""] = pathPattern.exec(joined) ?? []
    const rest = joined.slice(path.length + sign.length)
    if (sign === " = ") building.put(stepsOf(path), JSON.parse(rest))
    else if (sign === ": ") building.put(stepsOf(path), unescaped(rest))
    else if (sign === ":") building.put(stepsOf(path), lines.map(unescaped).join("\n"))
    else throw new Error(`a row that says nothing: ${JSON.stringify(joined)}`)
  }
  return building.root
}
