// The list of the built-in tools, in the order in which models see them, with the parts that they share. Files are reached
// in this process, held to the workspace by how every path is opened; programs run in the sandbox.
import type { BlobPort } from "../../contract/Blobs.ts"
import type { ProcessPort } from "../../sandbox/process/ProcessPort.ts"
import type { WorkspaceCheck } from "../../sandbox/WorkspaceCheck.ts"
import type { Tool } from "../Tool.ts"
import { applyPatchTool } from "./edit/ApplyPatch.ts"
import { editFileTool } from "./edit/Edit.ts"
import { makeFetchUrl } from "./fetch/FetchUrl.ts"
import { listFilesTool } from "./files/List.ts"
import { readFileTool } from "./files/Read.ts"
import { writeFileTool } from "./files/Write.ts"
import { gitCommitTool } from "./git/Commit.ts"
import { gitDiffTool } from "./git/Diff.ts"
import { Git } from "./git/Git.ts"
import { gitStatusTool } from "./git/Status.ts"
import { makeAskUser } from "./question/AskUser.ts"
import { grepTool } from "./search/Grep.ts"
import { makeSearch } from "./search/Search.ts"
import { type Bash, makeBash } from "./shell/Bash.ts"
import { workspaceAccess } from "./ToolSchema.ts"
import type { Means } from "./Workspace.ts"

export interface BuiltinToolsOptions {
  /** What ECHS itself keeps: no tool reads or writes there. */
  readonly ownDirectories: ReadonlyArray<string>
  readonly blobs: BlobPort | undefined
  readonly processes: ProcessPort
  /** Where programs are looked for, as in the variable PATH. */
  readonly path: string
  readonly home: string
  /** Which directories can be workspaces; all of them, unless told. */
  readonly check?: WorkspaceCheck
  /** How paths are held; the best there is, unless told. */
  readonly means?: Means
}

export interface BuiltinTools extends Omit<Bash, "tool"> {
  readonly tools: ReadonlyArray<Tool>
}

export const builtinTools = (options: BuiltinToolsOptions): BuiltinTools => {
  const { blobs, check, home, means, ownDirectories, path, processes } = options
  const door = workspaceAccess({
    ownDirectories,
    ...(means === undefined ? {} : { means }),
    ...(check === undefined ? {} : { check })
  })
  const search = makeSearch({ processes, path })
  const git = new Git({ processes, home })
  const { close, closeConversation, tool: bash } = makeBash({ processes, ...(blobs === undefined ? {} : { blobs }) })
  const tools = [
    readFileTool({ door, blobs }),
    listFilesTool({ door }),
    grepTool({ door, search }),
    writeFileTool({ door }),
    editFileTool({ door }),
    applyPatchTool({ door }),
    gitStatusTool({ door, blobs, git }),
    gitDiffTool({ door, blobs, git }),
    gitCommitTool({ door, blobs, git }),
    bash,
    makeFetchUrl(),
    makeAskUser()
  ]
  return { tools, close, closeConversation }
}
