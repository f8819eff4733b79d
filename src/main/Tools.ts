// Puts the tools of a server together: the built-in ones and those of other sources behind one router, with the policy
// and the sandbox they are held by. Owns what has to be closed with the server.
import { workspaceTools } from "../tool/builtin/Builtin.ts"
import { commandTool } from "../tool/builtin/Command.ts"
import type { BlobPort } from "../tool/Output.ts"
import type { ToolPort } from "../tool/Port.ts"
import { evaluate } from "../tool/policy/Evaluate.ts"
import { makeRouter } from "../tool/Router.ts"
import { fixedSource } from "../tool/Source.ts"

export interface ToolsOptions {
  readonly dataDirectory: string
  /** What commands find in their environment. */
  readonly environment: Readonly<Record<string, string>>
  readonly blobs: BlobPort
}

export interface AssembledTools {
  readonly tools: ToolPort
  /** Ends what the tools still have running. */
  readonly close: () => Promise<void>
}

export const assembleTools = async (options: ToolsOptions): Promise<AssembledTools> => {
  const { blobs, dataDirectory, environment } = options
  const builtin = fixedSource([...workspaceTools({ ownDirectories: [dataDirectory], blobs }), commandTool(environment)])
  return {
    tools: makeRouter({
      sources: [builtin],
      evaluate,
      sandbox: { level: "none", contained: false },
      blobs
    }),
    close: async () => undefined
  }
}
