// `git_status`: the branch and what changed in the workspace, in the short form of git.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { defineTool } from "../../DefineTool.ts"
import type { Tool } from "../../Tool.ts"
import { type GitParts, inRepository, looksAt, printed } from "./GitTool.ts"

export const gitStatusTool = (parts: GitParts): Tool =>
  defineTool({
    ...looksAt,
    name: "git_status",
    description: "Shows the branch and the changed, staged and untracked files of the workspace, one a line.",
    input: Schema.Struct({}),
    access: () => ({ reads: ["."] }),
    preview: () => Effect.succeed({ title: "git status" }),
    run: (_input, context) =>
      inRepository(parts, context, (repository) =>
        Effect.flatMap(
          repository.run([
            ...["status", "--short", "--branch", "--untracked-files=all", "--ignore-submodules=dirty"],
            // A repository may be larger than the workspace.
            ...["--", "."]
          ]),
          (ended) => printed(ended, parts)
        )
      )
  })
