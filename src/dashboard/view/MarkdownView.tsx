// Markdown on the page: nodes built from the tree, never HTML. Links say where they go.
import { useSignal } from "@preact/signals"
import { wholeNumber } from "../state/Format.ts"
import { highlight } from "../state/Highlight.ts"
import { type Block, type Inline, parseMarkdown } from "../state/Markdown.ts"
import { safeText } from "../state/Safe.ts"

/** Longer texts are shown as they are, and longer tables in part until asked for. */
const markdownCharsMax = 300_000
const plainCharsShown = 20_000
const tableRowsShown = 100

const Inlines = ({ nodes }: { readonly nodes: ReadonlyArray<Inline> }) => (
  <>
    {nodes.map((node, at) => {
      switch (node.type) {
        case "text":
          return node.text
        case "code":
          return <code key={at}>{node.text}</code>
        case "strong":
          return (
            <strong key={at}>
              <Inlines nodes={node.children} />
            </strong>
          )
        case "em":
          return (
            <em key={at}>
              <Inlines nodes={node.children} />
            </em>
          )
        case "link":
          return <Link key={at} href={node.href} nodes={node.children} />
        default:
          return null
      }
    })}
  </>
)

const Link = ({ href, nodes }: { readonly href: string; readonly nodes: ReadonlyArray<Inline> }) => {
  const [only] = nodes
  const isBare = nodes.length === 1 && only?.type === "text" && only.text === href
  return (
    <>
      <a href={href} target="_blank" rel="noopener noreferrer" title={href}>
        <Inlines nodes={nodes} />
      </a>
      {isBare ? null : <span class="quiet small"> ({hostOf(href)})</span>}
    </>
  )
}

const hostOf = (href: string): string => {
  try {
    const { host, pathname } = new URL(href)
    return host || pathname
  } catch {
    return href
  }
}

const Code = ({ text }: { readonly text: string }) => (
  // Wide code is scrolled sideways, with the keyboard too.
  <pre class="code-block" tabIndex={0}>
    <code>
      {highlight(text).map(({ kind, text: piece }, at) =>
        kind === "plain" ? (
          piece
        ) : (
          <span class={`hl-${kind}`} key={at}>
            {piece}
          </span>
        )
      )}
    </code>
  </pre>
)

const Table = ({ block }: { readonly block: Extract<Block, { type: "table" }> }) => {
  const shown = useSignal(tableRowsShown)
  const rows = block.rows.slice(0, shown.value)
  const left = block.rows.length - rows.length
  return (
    <div class="table-scroll">
      <table>
        <thead>
          <tr>
            {block.head.map((cell, at) => (
              <th key={at}>
                <Inlines nodes={cell} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, index) => (
                <td key={index}>
                  <Inlines nodes={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {left === 0 ? null : (
        <button
          type="button"
          onClick={() => {
            shown.value += tableRowsShown * 10
          }}
        >
          {wholeNumber(left)} more rows
        </button>
      )}
    </div>
  )
}

const Blocks = ({ blocks }: { readonly blocks: ReadonlyArray<Block> }) => (
  <>
    {blocks.map((block, at) => {
      switch (block.type) {
        case "paragraph":
          return (
            <p key={at}>
              <Inlines nodes={block.children} />
            </p>
          )
        case "heading":
          return (
            <p key={at} class="strong">
              <Inlines nodes={block.children} />
            </p>
          )
        case "code":
          return <Code key={at} text={block.text} />
        case "quote":
          return (
            <blockquote key={at}>
              <Blocks blocks={block.children} />
            </blockquote>
          )
        case "list": {
          const items = block.items.map((item, index) => (
            <li key={index}>
              <Blocks blocks={item} />
            </li>
          ))
          return block.isOrdered ? <ol key={at}>{items}</ol> : <ul key={at}>{items}</ul>
        }
        case "table":
          return <Table key={at} block={block} />
        case "rule":
          return <hr key={at} />
        default:
          return null
      }
    })}
  </>
)

/** A text as it is, shown piece by piece where it is long. */
export const PlainText = ({ label, text }: { readonly label: string; readonly text: string }) => {
  const shown = useSignal(plainCharsShown)
  const left = text.length - shown.value
  return (
    <div class="stack tight">
      <pre class="code-block output" tabIndex={0} title={label}>
        {safeText(text.slice(0, shown.value))}
      </pre>
      {left <= 0 ? null : (
        <button
          type="button"
          onClick={() => {
            shown.value *= 10
          }}
        >
          {wholeNumber(left)} more characters
        </button>
      )}
    </div>
  )
}

export const MarkdownView = ({ text }: { readonly text: string }) =>
  text.length > markdownCharsMax ? (
    <PlainText label="text" text={text} />
  ) : (
    <div class="markdown">
      <Blocks blocks={parseMarkdown(safeText(text))} />
    </div>
  )
