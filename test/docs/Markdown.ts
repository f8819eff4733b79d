// The little of Markdown that the tests of the documents need: fenced blocks, code spans, links, headings.

export interface CodeBlock {
  readonly language: string
  readonly line: number
  readonly text: string
}

export const codeBlocks = (markdown: string): ReadonlyArray<CodeBlock> =>
  [...markdown.matchAll(/^```([a-z]*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    language: match[1] ?? "",
    line: markdown.slice(0, match.index).split("\n").length,
    text: match[2] ?? ""
  }))

const withoutBlocks = (markdown: string): string => markdown.replace(/^```[\s\S]*?^```$/gm, "")

export const codeSpans = (markdown: string): ReadonlyArray<string> =>
  [...withoutBlocks(markdown).matchAll(/`([^`\n]+)`/g)].map((match) => match[1] ?? "")

/** Targets of inline links, without those that lead out of the project. */
export const localLinks = (markdown: string): ReadonlyArray<string> =>
  [...withoutBlocks(markdown).matchAll(/\]\(([^)\s]+)\)/g)]
    .map((match) => match[1] ?? "")
    .filter((target) => !/^[a-z]+:/.test(target))

/** The fragments that headings can be linked by. */
export const anchors = (markdown: string): ReadonlySet<string> =>
  new Set(
    [...withoutBlocks(markdown).matchAll(/^#+ (.+)$/gm)].map((match) =>
      (match[1] ?? "")
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-")
    )
  )

/** Rows of all tables, as trimmed cells, without the rulers. */
export const tableRows = (markdown: string): ReadonlyArray<ReadonlyArray<string>> =>
  withoutBlocks(markdown)
    .split("\n")
    .filter((line) => line.startsWith("|") && !/^[|\s:-]+$/.test(line))
    .map((line) =>
      line
        .slice(1, -1)
        .split("|")
        .map((cell) => cell.trim())
    )

/** The commands of a shell block, without comments, taken apart where they are chained. */
export const shellCommands = (block: CodeBlock): ReadonlyArray<string> =>
  block.text
    .split("\n")
    .flatMap((line) => line.replace(/(^|\s)#.*$/, "").split("&&"))
    .map((command) => command.trim())
    .filter((command) => command !== "")
