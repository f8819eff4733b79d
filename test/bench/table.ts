// Rows as text for people: columns that no row uses are left out, numbers keep three or four significant digits.
import type { Row } from "./Bench.ts"

interface Column {
  readonly title: string
  readonly isNumber: boolean
  readonly cell: (row: Row) => string
}

const columns: ReadonlyArray<Column> = [
  { title: "name", isNumber: false, cell: (row) => row.name },
  { title: "value", isNumber: true, cell: (row) => formatNumber(row.value) },
  { title: "unit", isNumber: false, cell: (row) => row.unit },
  { title: "baseline", isNumber: false, cell: (row) => row.baseline ?? "" },
  { title: "ratio", isNumber: true, cell: (row) => formatOptional(row.ratio) },
  { title: "target", isNumber: true, cell: (row) => formatOptional(row.target) },
  { title: "met", isNumber: false, cell: (row) => (row.met === undefined ? "" : row.met ? "yes" : "no") }
]

export const renderTable = (rows: ReadonlyArray<Row>): string => {
  const used = columns.filter((column) => rows.some((row) => column.cell(row) !== ""))
  const widths = used.map(({ title, cell }) => Math.max(title.length, ...rows.map((row) => cell(row).length)))
  const line = (text: (column: Column) => string) =>
    used
      .map((column, index) => {
        const width = widths[index] ?? 0
        return column.isNumber ? text(column).padStart(width) : text(column).padEnd(width)
      })
      .join("  ")
      .trimEnd()
  return [line(({ title }) => title), ...rows.map((row) => line(({ cell }) => cell(row)))].join("\n")
}

const formatOptional = (value: number | undefined): string => (value === undefined ? "" : formatNumber(value))

export const formatNumber = (value: number): string => {
  const size = Math.abs(value)
  if (size >= 1000) return Math.round(value).toLocaleString("en-US")
  return String(Number(value.toPrecision(size >= 100 ? 4 : 3)))
}
