// The tools that work on the files of a workspace: those that look, those that write, and those of its repository. Files
// are reached in this process, held to the workspace by how every path is opened; programs run in the sandbox.

import type { ProcessPort } from "../../sandbox/process/ProcessPort.ts"
import type { WorkspaceCheck } from "../../sandbox/WorkspaceCheck.ts"
import type { BlobPort } from "../Output.ts"
import type { Tool } from "../Tool.ts"
import { applyPatchTool } from "./edit/ApplyPatch.ts"
import { editFileTool } from "./edit/Edit.ts"
import { listFilesTool } from "./files/List.ts"
import { readFileTool } from "./files/Read.ts"
import { writeFileTool } from "./files/Write.ts"
import { Git } from "./git/Git.ts"
import { gitCommitTool, gitDiffTool, gitStatusTool } from "./git/GitTools.ts"
import { grepTool } from "./search/Grep.ts"
import { makeSearch } from "./search/Search.ts"
import { workspaceAccess } from "./ToolSchema.ts"
import type { Means } from "./Workspace.ts"

export interface WorkspaceToolsOptions {
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

export const workspaceTools = (options: WorkspaceToolsOptions): ReadonlyArray<Tool> => {
  const { blobs, check, home, means, ownDirectories, path, processes } = options
  const door = workspaceAccess({
    ownDirectories,
    ...(means === undefined ? {} : { means }),
    ...(check === undefined ? {} : { check })
  })
  const inGit = { door, blobs, git: new Git({ processes, home }) }
  return [
    readFileTool({ door, blobs }),
    listFilesTool({ door }),
    grepTool({ door, search: makeSearch({ processes, path }) }),
    writeFileTool({ door }),
    editFileTool({ door }),
    applyPatchTool({ door }),
    gitStatusTool(inGit),
    gitDiffTool(inGit),
    gitCommitTool(inGit)
  ]
}
