// `list_files`: what is in a directory, or in all directories below it, without what git ignores. Bounded; what was left
// out is told.
import { readlink } from "node:fs/promises"
import { promisedOutcome } from "../../PromiseWork.ts"
import type { Input, Tool } from "../../Tool.ts"
import type { ToolOutcome } from "../../ToolPort.ts"
import { ToolFailure, told } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { aPath, asNumber, asText, flag, looks, takes, type WorkspaceAccess, whole } from "../ToolSchema.ts"
import type { Workspace } from "../Workspace.ts"
import { emptyTally, type TreeEntry, type TreeTally, walkTree } from "./Tree.ts"

const depthOf = (input: Input): number => {
  if (typeof input["depth"] === "number") return Math.min(input["depth"], builtinLimits.walkDepthMax)
  return input["recursive"] === true ? builtinLimits.walkDepthMax : 1
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

const listBelow = async (workspace: Workspace, input: Input, signal: AbortSignal, path: string): Promise<Listed> =>
  workspace.locate(path, { for: "reading" }, async ({ at, kind, shown }) => {
    if (kind === "missing") throw new ToolFailure("file_error", `${path}: there is no such directory`)
    if (kind !== "directory") throw new ToolFailure("file_error", `${path} is no directory`)
    const directory = shown === "." ? "" : shown
    const tally = emptyTally()
    const includeIgnored = input["include_ignored"] === true
    const limit = Math.min(asNumber(input["limit"], builtinLimits.listEntriesMax), builtinLimits.listEntriesMax)
    const lines: Array<string> = []
    const tree = walkTree({ workspace, directory, at, depthMax: depthOf(input), includeIgnored, signal }, tally)
    for await (const entry of tree) {
      if (lines.length === limit) return { lines, isCut: true, tally }
      lines.push(await lineOf(entry, directory))
    }
    return { lines, isCut: tally.isCut, tally }
  })

const outcomeOf = ({ isCut, lines, tally }: Listed): ToolOutcome => {
  const notes = [
    ...(lines.length === 0 && !isCut ? ["(empty)"] : []),
    ...(isCut ? [`… more than ${lines.length} entries; name a directory to see less …`] : []),
    ...(tally.ignored > 0 ? [`(${tally.ignored} ignored not shown; include_ignored shows them)`] : [])
  ]
  return { status: "success", output: [...lines, ...notes].join("\n") }
}

const parameters = takes(
  {
    path: aPath("directory in the workspace; the workspace itself unless told"),
    recursive: flag("also what is in the directories below"),
    depth: whole("how many levels, 1 being the directory itself", { minimum: 1 }),
    include_ignored: flag("also what .gitignore leaves out"),
    limit: whole(`how many entries at most, ${builtinLimits.listEntriesMax} unless told`, { minimum: 1 })
  },
  []
)

export const listFilesTool = ({ door }: { readonly door: WorkspaceAccess }): Tool => ({
  ...looks,
  name: "list_files",
  description:
    "Lists the files of a directory in the workspace, directories with a slash at the end. Leaves out what .gitignore names.",
  parameters,
  access: (input) => ({ reads: [asText(input["path"], ".")], ...(depthOf(input) > 1 ? { below: true } : {}) }),
  preview: async ({ path }) => ({ title: `list ${asText(path, ".")}` }),
  run: (input, context) => {
    const path = asText(input["path"], ".")
    return promisedOutcome(context, (place) =>
      told(path, async () => outcomeOf(await listBelow(await door.open(place), input, place.signal, path)))
    )
  }
})
