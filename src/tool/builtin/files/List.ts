// `list_files`: what is in a directory, or in all directories below it, without what git ignores. Bounded; what was left
// out is told.
import { readlink } from "node:fs/promises"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { defineTool } from "../../DefineTool.ts"
import type { Tool } from "../../Tool.ts"
import type { ToolOutcome } from "../../ToolPort.ts"
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { locate, step, told } from "../FileWork.ts"
import { aPath, flag, looks, optional, type WorkspaceAccess, whole } from "../ToolSchema.ts"
import type { Workspace } from "../Workspace.ts"
import { emptyTally, type TreeEntry, type TreeRequest, type TreeTally, walkTree } from "./Tree.ts"

const input = Schema.Struct({
  path: optional(aPath("directory in the workspace; the workspace itself unless told")),
  recursive: optional(flag("also what is in the directories below")),
  depth: optional(whole("how many levels, 1 being the directory itself", { minimum: 1 })),
  include_ignored: optional(flag("also what .gitignore leaves out")),
  limit: optional(whole(`how many entries at most, ${builtinLimits.listEntriesMax} unless told`, { minimum: 1 }))
})
type ListInput = typeof input.Type

const depthOf = ({ depth, recursive }: ListInput): number => {
  if (depth !== undefined) return Math.min(depth, builtinLimits.walkDepthMax)
  return recursive === true ? builtinLimits.walkDepthMax : 1
}

const lineOf = async (entry: TreeEntry, base: string): Promise<string> => {
  const name = base === "" ? entry.path : entry.path.slice(base.length + 1)
  if (entry.kind === "directory") return `${name}/`
  if (entry.kind !== "link") return name
  return `${name} -> ${await readlink(entry.at).catch(() => "?")}`
}

interface Listed {
  readonly lines: ReadonlyArray<string>
  readonly isCut: boolean
  readonly tally: TreeTally
}

const listBelow = Effect.fnUntraced(function* (workspace: Workspace, given: ListInput) {
  const { include_ignored: includeIgnored = false, limit: wanted = builtinLimits.listEntriesMax, path = "." } = given
  const { at, kind, shown } = yield* locate(workspace, path, { for: "reading" })
  if (kind === "missing")
    return yield* Effect.fail(new ToolFailure("file_error", `${path}: there is no such directory`))
  if (kind !== "directory") return yield* Effect.fail(new ToolFailure("file_error", `${path} is no directory`))
  const directory = shown === "." ? "" : shown
  const tally = emptyTally()
  const limit = Math.min(wanted, builtinLimits.listEntriesMax)
  const lines: Array<string> = []
  const tree = yield* walked({ workspace, directory, at, depthMax: depthOf(given), includeIgnored }, tally)
  for (let next = yield* tree; next.done !== true; next = yield* tree) {
    if (lines.length === limit) return { lines, isCut: true, tally }
    const entry = next.value
    lines.push(yield* step(() => lineOf(entry, directory)))
  }
  return { lines, isCut: tally.isCut, tally }
})

/** The next entry of a walk, each time it is run; the walk lets go of its directories with the scope. */
const walked = (request: TreeRequest, tally: TreeTally) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => walkTree(request, tally)),
      (tree) => Effect.promise(() => tree.return(undefined))
    ),
    (tree) => step(() => tree.next())
  )

const outcomeOf = ({ isCut, lines, tally }: Listed): ToolOutcome => {
  const notes = [
    ...(lines.length === 0 && !isCut ? ["(empty)"] : []),
    ...(isCut ? [`… more than ${lines.length} entries; name a directory to see less …`] : []),
    ...(tally.ignored > 0 ? [`(${tally.ignored} ignored not shown; include_ignored shows them)`] : [])
  ]
  return { status: "success", output: [...lines, ...notes].join("\n") }
}

export const listFilesTool = ({ door }: { readonly door: WorkspaceAccess }): Tool =>
  defineTool({
    ...looks,
    name: "list_files",
    description:
      "Lists the files of a directory in the workspace, directories with a slash at the end. Leaves out what .gitignore names.",
    input,
    access: (given) => ({ reads: [given.path ?? "."], ...(depthOf(given) > 1 ? { below: true } : {}) }),
    preview: ({ path = "." }) => Effect.succeed({ title: `list ${path}` }),
    run: (given, context) =>
      told(
        given.path ?? ".",
        Effect.flatMap(door.open(context), (workspace) => listBelow(workspace, given)).pipe(Effect.map(outcomeOf))
      )
  })
