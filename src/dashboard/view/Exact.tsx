// Exact text on the page: rows with numbers, escapes in a color of their own. Long texts are laid out as they are scrolled
// to; nothing is cut.
import { type ExactPart, type ExactRow, exactRows } from "../state/ExactLines.ts"

const groupRows = 50

const Parts = ({ parts }: { readonly parts: ReadonlyArray<ExactPart> }) => (
  <>
    {parts.map((part, at) =>
      part.isEscape ? (
        <span class="esc" key={at}>
          {part.text}
        </span>
      ) : (
        part.text
      )
    )}
  </>
)

export const grouped = (rows: ReadonlyArray<ExactRow>): ReadonlyArray<ReadonlyArray<ExactRow>> => {
  const groups: Array<ReadonlyArray<ExactRow>> = []
  for (let at = 0; at < rows.length; at += groupRows) groups.push(rows.slice(at, at + groupRows))
  return groups
}

const diffClass = (row: ExactRow): string => {
  const first = row.parts[0]?.text ?? ""
  if (first.startsWith("@@") || first.startsWith("+++") || first.startsWith("---")) return "hunk"
  return first.startsWith("+") ? "add" : first.startsWith("-") ? "del" : ""
}

export const Exact = ({
  isDiff = false,
  label,
  text
}: {
  readonly isDiff?: boolean
  readonly label: string
  readonly text: string
}) => {
  const rows = exactRows(text)
  const isSingle = rows.length === 1
  return (
    // Scrolled with the keyboard too.
    <section class={`exact ${isSingle ? "single" : ""}`} aria-label={label} tabIndex={0} data-exact>
      {grouped(rows).map((group, at) => (
        <div class="group" key={at}>
          {group.map((row, index) => (
            <div class={`line ${isDiff ? diffClass(row) : ""}`} key={index} data-line={row.line}>
              <span class="number" aria-hidden="true">
                {row.line === 0 ? "┆" : row.line}
              </span>
              <span class="text">
                <Parts parts={row.parts} />
              </span>
            </div>
          ))}
        </div>
      ))}
    </section>
  )
}
