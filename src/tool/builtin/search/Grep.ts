// `grep`: lines of files in the workspace that match, by ripgrep where it is installed and by a search of our own where it
// is not. Both give the same output.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { defineTool } from "../../DefineTool.ts"
import type { Tool } from "../../Tool.ts"
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { locate, told } from "../FileWork.ts"
import { expandBraces } from "../files/Glob.ts"
import { aPath, boundedText, flag, looks, optional, text, type WorkspaceAccess, whole } from "../ToolSchema.ts"
import type { Workspace } from "../Workspace.ts"
import type { FoundLine, SearchPort, SearchRequest, SearchResult } from "./Port.ts"

const input = Schema.Struct({
  pattern: boundedText("regular expression, without look-around and back-references", {
    maxLength: builtinLimits.searchPatternCharsMax
  }),
  path: optional(aPath("file or directory in the workspace; all of it unless told")),
  glob: optional(text("only files whose path matches, such as *.ts or src/**/*.{js,ts}")),
  plain_text: optional(flag("the pattern is plain text")),
  ignore_case: optional(flag("capital and small letters are the same")),
  context: optional(
    whole("lines to show before and after each match", { minimum: 0, maximum: builtinLimits.searchContextMax })
  ),
  files_only: optional(flag("only the files, with the number of matches in each")),
  include_ignored: optional(flag("also files that .gitignore leaves out")),
  limit: optional(
    whole(`how many matches at most, ${builtinLimits.searchMatchesDefault} unless told`, {
      minimum: 1,
      maximum: builtinLimits.searchMatchesMax
    })
  )
})
type GrepInput = typeof input.Type

const requestOf = Effect.fnUntraced(function* (workspace: Workspace, given: GrepInput) {
  const { context = 0, glob = "", limit = builtinLimits.searchMatchesDefault, path = "." } = given
  const { kind, shown } = yield* Effect.scoped(locate(workspace, path, { for: "reading" }))
  if (kind === "missing")
    return yield* Effect.fail(new ToolFailure("file_error", `${path}: there is no such file or directory`))
  if (kind === "other") return yield* Effect.fail(new ToolFailure("file_error", `${path} is no regular file`))
  return {
    workspace,
    path: shown === "." ? "" : shown,
    pattern: given.pattern,
    isPlainText: given.plain_text === true,
    ignoreCase: given.ignore_case === true,
    globs: glob === "" ? [] : expandBraces(glob),
    contextLines: Math.min(context, builtinLimits.searchContextMax),
    includeIgnored: given.include_ignored === true,
    matchesMax: Math.min(limit, builtinLimits.searchMatchesMax)
  }
})

const lineOf = ({ isMatch, line, path, text: found }: FoundLine): string =>
  isMatch ? `${path}:${line}:${found}` : `${path}-${line}-${found}`

/** Groups of lines that do not follow each other are told apart, where lines around matches were asked for. */
const grouped = ({ lines }: SearchResult, contextLines: number): ReadonlyArray<string> =>
  lines.flatMap((found, index) => {
    const before = lines[index - 1]
    const follows = before === undefined || (before.path === found.path && before.line + 1 === found.line)
    return contextLines > 0 && !follows ? ["--", lineOf(found)] : [lineOf(found)]
  })

const countsOf = ({ lines }: SearchResult): ReadonlyArray<string> => {
  const counts = new Map<string, number>()
  for (const { isMatch, path } of lines) if (isMatch) counts.set(path, (counts.get(path) ?? 0) + 1)
  return [...counts].map(([path, count]) => `${path}: ${count}`)
}

const outputOf = (result: SearchResult, given: GrepInput, { contextLines, matchesMax }: SearchRequest): string => {
  if (result.matches === 0) return result.isCut ? "no matches in what was looked at; name a directory" : "no matches"
  const lines = given.files_only === true ? countsOf(result) : grouped(result, contextLines)
  const more = `… more than ${Math.min(result.matches, matchesMax)} matches; narrow the search …`
  return [...lines, ...(result.isCut ? [more] : [])].join("\n")
}

const run = Effect.fnUntraced(function* (search: SearchPort, workspace: Workspace, given: GrepInput) {
  const request = yield* requestOf(workspace, given)
  const result = yield* search.search(request)
  return { status: "success" as const, output: outputOf(result, given, request) }
})

export interface GrepParts {
  readonly door: WorkspaceAccess
  readonly search: SearchPort
}

export const grepTool = ({ door, search }: GrepParts): Tool =>
  defineTool({
    ...looks,
    timeout_ms: builtinLimits.searchTimeoutMs,
    name: "grep",
    description:
      "Searches the text of files in the workspace for a regular expression. Gives path:line:text for each match, in order. Leaves out what .gitignore names, and binary files.",
    input,
    access: ({ path = "." }) => ({ reads: [path], below: true }),
    preview: ({ path = ".", pattern }) => Effect.succeed({ title: `search ${path}`, detail: pattern }),
    run: (given, context) =>
      told(
        given.path ?? ".",
        Effect.flatMap(door.open(context), (workspace) => run(search, workspace, given))
      )
  })
