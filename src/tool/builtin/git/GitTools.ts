// `git_status`, `git_diff` and `git_commit`. They run in the sandbox like any command; unlike one, they start nothing
// that the repository names, unless its hooks were asked for and granted.
import { isAbsolute, normalize } from "node:path"
import type * as Effect from "effect/Effect"
import { type BlobPort, processOutput } from "../../Output.ts"
import { promisedOutcome } from "../../PromiseWork.ts"
import type { Input, Tool } from "../../Tool.ts"
import type { ToolContext, ToolOutcome } from "../../ToolPort.ts"
import { ToolFailure, told } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { asList, asText, flag, takes, text, type WorkspaceAccess } from "../ToolSchema.ts"
import { failure, type Git, type Repository } from "./Git.ts"

export interface GitParts {
  readonly door: WorkspaceAccess
  readonly git: Git
  readonly blobs: BlobPort | undefined
}

const paths = (description: string) => ({
  type: "array",
  items: { type: "string", minLength: 1 },
  maxItems: builtinLimits.gitPathsMax,
  description
})

/** No paths are all paths, also when they are a list without any. */
const meant = (wanted: unknown): ReadonlyArray<string> => {
  const named = asList(wanted)
  return named.length === 0 ? ["."] : named
}

const inRepository = (
  { door, git }: GitParts,
  context: ToolContext,
  work: (repository: Repository) => Promise<ToolOutcome>
): Effect.Effect<ToolOutcome> =>
  promisedOutcome(context, (place) =>
    told(undefined, async () => {
      const { root } = await door.open(place)
      return work(await git.open({ root, signal: place.signal }))
    })
  )

const looksAt = {
  effect_class: "pure",
  mutating: false,
  timeout_ms: builtinLimits.gitTimeoutMs,
  provenance: "builtin",
  sandboxed: true
} as const

export const gitStatusTool = (parts: GitParts): Tool => ({
  ...looksAt,
  name: "git_status",
  description: "Shows the branch and the changed, staged and untracked files of the workspace, one a line.",
  parameters: takes({}, []),
  access: () => ({ reads: ["."] }),
  preview: async () => ({ title: "git status" }),
  run: (_input, context) =>
    inRepository(parts, context, async (repository) => {
      const ended = await repository.run([
        ...["status", "--short", "--branch", "--untracked-files=all", "--ignore-submodules=dirty"],
        // A repository may be larger than the workspace.
        ...["--", "."]
      ])
      return { status: "success", ...(await processOutput(ended, parts.blobs)) }
    })
})

/** Paths below the workspace alone: the repository may reach further. */
const inWorkspace = (named: ReadonlyArray<string>): ReadonlyArray<string> => {
  const outside = named.find((path) => isAbsolute(path) || normalize(path).split("/")[0] === "..")
  if (outside !== undefined) throw new ToolFailure("outside_workspace", `${outside} is not a path below the workspace`)
  return named
}

/** A name of a commit can never be taken for an option, or for a path. */
const revision = (value: unknown): ReadonlyArray<string> => {
  const name = asText(value)
  if (name === "") return []
  if (name.startsWith("-") || /\s|\0/.test(name))
    throw new ToolFailure("invalid_arguments", `${JSON.stringify(name)} is no name of a commit`)
  return [name]
}

const diffArguments = (input: Input): ReadonlyArray<string> => [
  "diff",
  "--no-ext-diff",
  "--no-textconv",
  "--no-color",
  "--ignore-submodules=dirty",
  "--submodule=short",
  "--relative",
  ...(input["staged"] === true ? ["--cached"] : []),
  ...(input["stat"] === true ? ["--stat"] : []),
  ...revision(input["from"]),
  ...revision(input["to"]),
  "--",
  ...inWorkspace(meant(input["paths"]))
]

export const gitDiffTool = (parts: GitParts): Tool => ({
  ...looksAt,
  name: "git_diff",
  description:
    "Shows what was changed in the workspace since the last commit or the staged files, or between two commits, as a unified diff.",
  parameters: takes(
    {
      paths: paths("only these files or directories"),
      staged: flag("what is staged, against the last commit"),
      from: text("a commit to compare with; the staged files unless told"),
      to: text("a second commit; the files as they are unless told"),
      stat: flag("only how many lines changed in which file")
    },
    []
  ),
  access: ({ paths: wanted }) => ({ reads: meant(wanted), below: true }),
  preview: async () => ({ title: "git diff" }),
  run: (input, context) =>
    inRepository(parts, context, async (repository) => {
      const ended = await repository.run(diffArguments(input))
      if (ended.output === "") return { status: "success", output: "no differences" }
      return { status: "success", ...(await processOutput(ended, parts.blobs)) }
    })
})

const stage = async (repository: Repository, input: Input): Promise<void> => {
  const named = asList(input["paths"])
  const wanted = named.length === 0 && input["all"] === true ? ["."] : inWorkspace(named)
  if (wanted.length === 0) return
  const ended = await repository.script('stage "$@"', wanted, { commits: true })
  if (ended.exit_code !== 0) throw failure("add", ended)
}

/** Exit 9: nothing is staged, and no merge is waiting to be concluded. */
const isStagedScript = `
git diff --cached --quiet --no-ext-diff --no-textconv --ignore-submodules=none || exit 0
git rev-parse -q --verify MERGE_HEAD >/dev/null && exit 0
exit 9
`

/** A workspace that is a part of a repository commits its own, and not what somebody has staged elsewhere. */
const checkPart = async (repository: Repository, withHooks: boolean): Promise<void> => {
  const { prefix } = repository
  if (prefix === "") return
  if (withHooks)
    throw new ToolFailure(
      "git_failed",
      "hooks do not run here: the workspace is a part of its repository; commit without"
    )
  const staged = await repository.run(["diff", "--cached", "--name-only", "-z", "--no-ext-diff", "--no-textconv"])
  const outside = staged.stdout.split("\0").filter((path) => path !== "" && !path.startsWith(prefix))
  if (outside.length > 0)
    throw new ToolFailure(
      "git_failed",
      `${outside.length} files outside the workspace are staged, such as ${outside[0]}`
    )
}

const nothingStaged = /nothing to commit|nothing added to commit|no changes added to commit/

const commit = async ({ blobs }: GitParts, repository: Repository, input: Input): Promise<ToolOutcome> => {
  const { email, name } = await repository.identity()
  const withHooks = input["run_hooks"] === true
  await checkPart(repository, withHooks)
  await stage(repository, input)
  // Git itself would look for changes that could be staged, in submodules as well.
  const isNothing = !withHooks && (await repository.script(isStagedScript, [])).exit_code === 9
  if (isNothing) throw new ToolFailure("nothing_to_commit", "nothing is staged; name paths, or say all")
  const args = ["commit", "--file=-", "--cleanup=strip", "--no-gpg-sign", ...(withHooks ? [] : ["--no-verify"])]
  const settings = [["user.name", name] as const, ["user.email", email] as const]
  const ended = await repository.attempt(args, { stdin: asText(input["message"]), withHooks, commits: true, settings })
  if (ended.exit_code === 1 && nothingStaged.test(ended.stdout))
    throw new ToolFailure("nothing_to_commit", "nothing is staged; name paths, or say all")
  if (ended.exit_code !== 0) throw failure("commit", ended)
  return { status: "success", ...(await processOutput(ended, blobs)) }
}

export const gitCommitTool = (parts: GitParts): Tool => ({
  effect_class: "effect",
  mutating: true,
  timeout_ms: builtinLimits.gitTimeoutMs,
  provenance: "builtin",
  sandboxed: true,
  name: "git_commit",
  description:
    "Commits changes of the workspace: the named paths, or all, or what is staged already. Hooks of the repository do not run unless asked for.",
  parameters: takes(
    {
      message: text("the message", { minLength: 1, maxLength: builtinLimits.commitMessageCharsMax }),
      paths: paths("stage these first"),
      all: flag("stage everything that changed first, new files included"),
      run_hooks: flag("let the hooks of the repository run")
    },
    ["message"]
  ),
  // Hooks are programs of the repository: what they do, no words tell.
  access: ({ paths: wanted, run_hooks }) => ({
    writes: meant(wanted),
    ...(run_hooks === true ? { command: "git commit", stateful: true } : {})
  }),
  preview: async ({ all, message, paths: wanted, run_hooks }) => {
    const what =
      wanted !== undefined ? asList(wanted).join("\n") : all === true ? "everything that changed" : "what is staged"
    const hooks = run_hooks === true ? "\n\nThe hooks of the repository run." : ""
    return { title: "git commit", detail: `${asText(message)}\n\n${what}${hooks}` }
  },
  run: (input, context) => inRepository(parts, context, (repository) => commit(parts, repository, input))
})
