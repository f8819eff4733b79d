// `git_diff`: what changed in the workspace, or between two commits, as a unified diff.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { defineTool } from "../../DefineTool.ts"
import type { Tool } from "../../Tool.ts"
import type { ToolOutcome } from "../../ToolPort.ts"
import { ToolFailure } from "../BuiltinErrors.ts"
import { pure } from "../FileWork.ts"
import { flag, optional, text } from "../ToolSchema.ts"
import { type GitParts, inRepository, inWorkspace, looksAt, meant, paths, printed } from "./GitTool.ts"

/** A name of a commit can never be taken for an option, or for a path. */
const revision = (name = ""): ReadonlyArray<string> => {
  if (name === "") return []
  if (name.startsWith("-") || /\s|\0/.test(name))
    throw new ToolFailure("invalid_arguments", `${JSON.stringify(name)} is no name of a commit`)
  return [name]
}

const input = Schema.Struct({
  paths: optional(paths("only these files or directories")),
  staged: optional(flag("what is staged, against the last commit")),
  from: optional(text("a commit to compare with; the staged files unless told")),
  to: optional(text("a second commit; the files as they are unless told")),
  stat: optional(flag("only how many lines changed in which file"))
})

const diffArguments = ({ from, paths: named, staged, stat, to }: typeof input.Type): ReadonlyArray<string> => [
  "diff",
  "--no-ext-diff",
  "--no-textconv",
  "--no-color",
  "--ignore-submodules=dirty",
  "--submodule=short",
  "--relative",
  ...(staged === true ? ["--cached"] : []),
  ...(stat === true ? ["--stat"] : []),
  ...revision(from),
  ...revision(to),
  "--",
  ...inWorkspace(meant(named))
]

export const gitDiffTool = (parts: GitParts): Tool =>
  defineTool({
    ...looksAt,
    name: "git_diff",
    description:
      "Shows what was changed in the workspace since the last commit or the staged files, or between two commits, as a unified diff.",
    input,
    access: ({ paths: named }) => ({ reads: meant(named), below: true }),
    preview: () => Effect.succeed({ title: "git diff" }),
    run: (given, context) =>
      inRepository(parts, context, (repository) =>
        pure(() => diffArguments(given)).pipe(
          Effect.flatMap((args) => repository.run(args)),
          Effect.flatMap((ended) =>
            ended.output === ""
              ? Effect.succeed<ToolOutcome>({ status: "success", output: "no differences" })
              : printed(ended, parts)
          )
        )
      )
  })
