// What the git tools have in common. They run in the sandbox like any command; unlike one, they start nothing that the
// repository names, unless its hooks were asked for and granted.
import { isAbsolute, normalize } from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { BlobPort } from "../../../contract/Blobs.ts"
import type { ProcessEnded } from "../../../sandbox/process/ProcessPort.ts"
import { processOutput } from "../../Output.ts"
import type { ToolContext, ToolOutcome } from "../../ToolPort.ts"
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { type FileProblem, told } from "../FileWork.ts"
import type { WorkspaceAccess } from "../ToolSchema.ts"
import type { Git, Repository } from "./Git.ts"

export interface GitParts {
  readonly door: WorkspaceAccess
  readonly git: Git
  readonly blobs: BlobPort | undefined
}

export const paths = (description: string) =>
  Schema.Array(Schema.String.check(Schema.isMinLength(1)))
    .check(Schema.isMaxLength(builtinLimits.gitPathsMax))
    .annotate({ description })

/** No paths are all paths, also when they are a list without any. */
export const meant = (named: ReadonlyArray<string> = []): ReadonlyArray<string> => (named.length === 0 ? ["."] : named)

/** Paths below the workspace alone: the repository may reach further. */
export const inWorkspace = (named: ReadonlyArray<string>): ReadonlyArray<string> => {
  const outside = named.find((path) => isAbsolute(path) || normalize(path).split("/")[0] === "..")
  if (outside !== undefined) throw new ToolFailure("outside_workspace", `${outside} is not a path below the workspace`)
  return named
}

export const inRepository = (
  { door, git }: GitParts,
  context: ToolContext,
  work: (repository: Repository) => Effect.Effect<ToolOutcome, FileProblem>
): Effect.Effect<ToolOutcome> =>
  told(
    undefined,
    door.open(context).pipe(
      Effect.flatMap(({ root }) => git.open(root)),
      Effect.flatMap(work)
    )
  )

/** What a run printed, as the result of the tool. */
export const printed = (ended: ProcessEnded, { blobs }: GitParts): Effect.Effect<ToolOutcome> =>
  Effect.map(processOutput(ended, blobs), (kept) => ({ status: "success", ...kept }))

export const looksAt = {
  effect_class: "pure",
  mutating: false,
  timeout_ms: builtinLimits.gitTimeoutMs,
  sandboxed: true
} as const
