// The text of an HTML page as a reader would see it: what is for machines is left out, blocks become lines, links keep
// where they lead. One pass from left to right; whatever the page looks like, time is in proportion to its length.
import { fetchLimits } from "./Limits.ts"

/** Elements whose content nobody reads. */
const unread: ReadonlySet<string> = new Set([
  "script",
  "style",
  "noscript",
  "template",
  "svg",
  "iframe",
  "object",
  "head"
])

const blocks: ReadonlySet<string> = new Set(
  (
    "address article aside blockquote br dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 " +
    "header hr li main nav ol p pre section summary table tbody td tfoot th thead tr ul title"
  ).split(" ")
)

const entities: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  ndash: "–",
  mdash: "—",
  hellip: "…",
  copy: "©",
  reg: "®",
  laquo: "«",
  raquo: "»",
  lsquo: "‘",
  rsquo: "’",
  ldquo: "“",
  rdquo: "”",
  bull: "•",
  middot: "·",
  times: "×",
  rarr: "→",
  larr: "←",
  shy: ""
}

const ofCode = (code: number): string =>
  Number.isInteger(code) && code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
    ? String.fromCodePoint(code)
    : "\ufffd"

const decoded = (text: string): string =>
  text.replaceAll(/&(#\d{1,7}|#x[0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});/g, (whole, name: string) => {
    if (name.startsWith("#x")) return ofCode(Number.parseInt(name.slice(2), 16))
    if (name.startsWith("#")) return ofCode(Number.parseInt(name.slice(1), 10))
    return (Object.hasOwn(entities, name) ? entities[name] : undefined) ?? whole
  })

/** Where the tag that begins here ends: quotes may hide its end. */
const endOfTag = (html: string, from: number): number => {
  let quote = ""
  for (let at = from; at < html.length; at++) {
    const character = html.charAt(at)
    if (quote !== "") {
      if (character === quote) quote = ""
    } else if (character === '"' || character === "'") quote = character
    else if (character === ">") return at
  }
  return html.length
}

const attribute = (tag: string, name: string): string | undefined => {
  const found = new RegExp(`\\s${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s>"']+))`, "i").exec(tag)
  const value = found?.[1] ?? found?.[2] ?? found?.[3]
  return value === undefined ? undefined : decoded(value)
}

const linkOf = (tag: string, base: URL): string | undefined => {
  const written = attribute(tag.slice(0, fetchLimits.urlCharsMax), "href")
  if (written === undefined || written.startsWith("#") || !URL.canParse(written, base)) return undefined
  const { href, protocol } = new URL(written, base)
  return protocol === "http:" || protocol === "https:" ? href : undefined
}

class Reader {
  private readonly html: string
  private readonly base: URL
  private readonly lower: string
  private readonly parts: Array<string> = []
  private link: string | undefined
  private at = 0
  private hasHead = false
  title = ""

  constructor(html: string, base: URL) {
    this.html = html
    this.base = base
    this.lower = html.toLowerCase()
  }

  text(): string {
    while (this.at < this.html.length) {
      const open = this.html.indexOf("<", this.at)
      const until = open === -1 ? this.html.length : open
      if (until > this.at) this.parts.push(decoded(this.html.slice(this.at, until)).replaceAll(/\s+/g, " "))
      this.at = until
      if (open !== -1) this.tag()
    }
    return tidied(this.parts.join(""))
  }

  private tag(): undefined {
    if (this.html.startsWith("<!--", this.at)) return this.skipTo("-->", 3)
    const next = this.html[this.at + 1] ?? ""
    if (!/[a-zA-Z/!?]/.test(next)) {
      this.parts.push("<")
      this.at += 1
      return
    }
    const end = endOfTag(this.html, this.at + 1)
    const tag = this.html.slice(this.at, end)
    this.at = end + 1
    const name = /^<\/?([a-zA-Z][a-zA-Z0-9]*)/.exec(tag)?.[1]?.toLowerCase() ?? ""
    return tag.startsWith("</") ? this.close(name) : this.open(name, tag)
  }

  private open(name: string, tag: string): undefined {
    if (name === "head") return this.hasHead ? undefined : this.head()
    if (unread.has(name) && !tag.endsWith("/")) return this.skipTo(`</${name}`, 0)
    if (name === "a") this.link = linkOf(tag, this.base)
    if (name === "li") this.parts.push("\n- ")
    else if (blocks.has(name)) this.parts.push("\n")
  }

  private close(name: string): undefined {
    if (name === "a" && this.link !== undefined) this.parts.push(` (${this.link})`)
    if (name === "a") this.link = undefined
    if (blocks.has(name)) this.parts.push("\n")
  }

  /** Of the head of a page, people see the title. */
  private head(): undefined {
    this.hasHead = true
    const end = Math.min(this.find("</head", this.at), this.find("<body", this.at))
    const open = this.find("<title", this.at)
    if (open < end) {
      const from = endOfTag(this.html, open) + 1
      const text = this.html.slice(from, Math.min(end, this.find("</title", from)))
      this.title = decoded(text).replaceAll(/\s+/g, " ").trim().slice(0, fetchLimits.titleCharsMax)
    }
    // A head without an end is left to the other elements.
    if (end < this.html.length) this.at = end
  }

  private find(text: string, from: number): number {
    const found = this.lower.indexOf(text, from)
    return found === -1 ? this.html.length : found
  }

  private skipTo(text: string, more: number): undefined {
    this.at = Math.min(this.html.length, this.find(text, this.at) + more)
  }
}

const tidied = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.replaceAll(/[ \t]+/g, " ").trim())
    .filter((line, index, lines) => line !== "" || (index > 0 && lines[index - 1] !== ""))
    .join("\n")
    .trim()

/** The title and the text of a page. */
export const readHtml = (html: string, base: URL): { readonly title: string; readonly text: string } => {
  const reader = new Reader(html, base)
  const text = reader.text()
  return { title: reader.title, text }
}
