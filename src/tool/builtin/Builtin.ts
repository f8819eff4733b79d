// The tools that work on the files of a workspace: those that look, and those that write. They run in this process, held
// to the workspace by how they open every path.
import type { BlobPort } from "../Output.ts"
import type { Tool } from "../Tool.ts"
import { applyPatchTool } from "./edit/ApplyPatch.ts"
import { editFileTool } from "./edit/Edit.ts"
import { listFilesTool } from "./files/List.ts"
import { readFileTool } from "./files/Read.ts"
import { writeFileTool } from "./files/Write.ts"
import { workspaceDoor } from "./Kit.ts"

export interface WorkspaceToolsOptions {
  /** What ECHS itself keeps: no tool reads or writes there. */
  readonly ownDirectories: ReadonlyArray<string>
  readonly blobs: BlobPort | undefined
}

export const workspaceTools = ({ blobs, ownDirectories }: WorkspaceToolsOptions): ReadonlyArray<Tool> => {
  const door = workspaceDoor({ ownDirectories })
  return [
    readFileTool({ door, blobs }),
    listFilesTool({ door }),
    writeFileTool({ door }),
    editFileTool({ door }),
    applyPatchTool({ door })
  ]
}
