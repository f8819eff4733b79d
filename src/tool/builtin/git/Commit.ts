// `git_commit`: commits paths of the workspace, everything, or what is staged. Hooks of the repository are programs: they
// run only when they were asked for.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { defineTool } from "../../DefineTool.ts"
import type { Tool } from "../../Tool.ts"
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { pure } from "../FileWork.ts"
import { boundedText, flag, optional } from "../ToolSchema.ts"
import { failure, type Repository } from "./Git.ts"
import { type GitParts, inRepository, inWorkspace, meant, paths, printed } from "./GitTool.ts"

const input = Schema.Struct({
  message: boundedText("the message", { maxLength: builtinLimits.commitMessageCharsMax }),
  paths: optional(paths("stage these first")),
  all: optional(flag("stage everything that changed first, new files included")),
  run_hooks: optional(flag("let the hooks of the repository run"))
})
type CommitInput = typeof input.Type

const stage = Effect.fnUntraced(function* (repository: Repository, { all, paths: named = [] }: CommitInput) {
  const wanted = yield* pure(() => (named.length === 0 && all === true ? ["."] : inWorkspace(named)))
  if (wanted.length === 0) return
  const ended = yield* repository.script('stage "$@"', wanted, { commits: true })
  if (ended.exit_code !== 0) yield* Effect.fail(failure("add", ended))
})

/** Exit 9: nothing is staged, and no merge is waiting to be concluded. */
const isStagedScript = `
git diff --cached --quiet --no-ext-diff --no-textconv --ignore-submodules=none || exit 0
git rev-parse -q --verify MERGE_HEAD >/dev/null && exit 0
exit 9
`

/** A workspace that is a part of a repository commits its own, and not what somebody has staged elsewhere. */
const checkPart = Effect.fnUntraced(function* (repository: Repository, withHooks: boolean) {
  const { prefix } = repository
  if (prefix === "") return
  if (withHooks)
    return yield* Effect.fail(
      new ToolFailure("git_failed", "hooks do not run here: the workspace is a part of its repository; commit without")
    )
  const staged = yield* repository.run(["diff", "--cached", "--name-only", "-z", "--no-ext-diff", "--no-textconv"])
  const outside = staged.stdout.split("\0").filter((path) => path !== "" && !path.startsWith(prefix))
  if (outside.length > 0)
    yield* Effect.fail(
      new ToolFailure("git_failed", `${outside.length} files outside the workspace are staged, such as ${outside[0]}`)
    )
})

const nothingStaged = /nothing to commit|nothing added to commit|no changes added to commit/

const nothingToCommit = (): ToolFailure =>
  new ToolFailure("nothing_to_commit", "nothing is staged; name paths, or say all")

const commit = Effect.fnUntraced(function* (parts: GitParts, repository: Repository, given: CommitInput) {
  const { email, name } = yield* repository.identity
  const withHooks = given.run_hooks === true
  yield* checkPart(repository, withHooks)
  yield* stage(repository, given)
  // Git itself would look for changes that could be staged, in submodules as well.
  const isNothing = !withHooks && (yield* repository.script(isStagedScript, [])).exit_code === 9
  if (isNothing) return yield* Effect.fail(nothingToCommit())
  const args = ["commit", "--file=-", "--cleanup=strip", "--no-gpg-sign", ...(withHooks ? [] : ["--no-verify"])]
  const settings = [["user.name", name] as const, ["user.email", email] as const]
  const ended = yield* repository.attempt(args, { stdin: given.message, withHooks, commits: true, settings })
  if (ended.exit_code === 1 && nothingStaged.test(ended.stdout)) return yield* Effect.fail(nothingToCommit())
  if (ended.exit_code !== 0) return yield* Effect.fail(failure("commit", ended))
  return yield* printed(ended, parts)
})

export const gitCommitTool = (parts: GitParts): Tool =>
  defineTool({
    effect_class: "effect",
    mutating: true,
    timeout_ms: builtinLimits.gitTimeoutMs,
    sandboxed: true,
    name: "git_commit",
    description:
      "Commits changes of the workspace: the named paths, or all, or what is staged already. Hooks of the repository do not run unless asked for.",
    input,
    // Hooks are programs of the repository: what they do, no words tell.
    access: ({ paths: wanted, run_hooks }) => ({
      writes: meant(wanted),
      ...(run_hooks === true ? { command: "git commit", stateful: true } : {})
    }),
    preview: ({ all, message, paths: wanted, run_hooks }) => {
      const what = wanted?.join("\n") ?? (all === true ? "everything that changed" : "what is staged")
      const hooks = run_hooks === true ? "\n\nThe hooks of the repository run." : ""
      return Effect.succeed({ title: "git commit", detail: `${message}\n\n${what}${hooks}` })
    },
    run: (given, context) => inRepository(parts, context, (repository) => commit(parts, repository, given))
  })
