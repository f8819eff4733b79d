// Git for the pursuit of goals: it only runs where something holds it, writes to the workspace alone, and never touches
// the index, the branches or the commits of the person whose repository it is. How it is run so that none of the programs
// of a repository starts is in `src/tool/git`. A step of a goal is one script, and so one start of a sandbox.

import { dropOldest } from "../rune/Elements.ts"
import type { ProcessEnded } from "../sandbox/process/ProcessPort.ts"
import { type GitPlace, QuietGit, type SeenSettings } from "../tool/git/QuietGit.ts"
import type { Runner, Tools } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"

export interface Git {
  /** Nothing when there is nobody to run it, when nothing would hold it, or when it could not be started. */
  readonly run: (directory: string, args: ReadonlyArray<string>) => Promise<ProcessEnded | undefined>
  /** A shell script whose `$1`, `$2`, … are the arguments, with `tree_of` and `exclude_echs` of this file. */
  readonly script: (directory: string, script: string, args: ReadonlyArray<string>) => Promise<ProcessEnded | undefined>
  /** The whole working directory as a tree, files that git ignores left out. */
  readonly writeTree: (directory: string) => Promise<string | undefined>
}

const identity = {
  GIT_AUTHOR_NAME: "echs",
  GIT_AUTHOR_EMAIL: "echs@localhost",
  GIT_COMMITTER_NAME: "echs",
  GIT_COMMITTER_EMAIL: "echs@localhost"
}

/** What programs leave behind beside the files they read: in no tree, so neither compared nor merged. */
const byProducts = [
  String.raw`(^|/)(__pycache__|\.pytest_cache|\.mypy_cache|\.ruff_cache|\.nyc_output|\.tox|htmlcov)/`,
  String.raw`\.pyc$|(^|/)\.coverage$|\.tsbuildinfo$`
].join("|")

/**
 * `tree_of DIRECTORY` prints the files of a directory as a tree: the working directory itself, or a worktree of its
 * repository, which is read with the settings of the workspace. The copy of the index keeps what git knows of unchanged
 * files, so that they are not read again; with its time, by which git tells files that changed in the very moment it
 * looked. Each copy has a place of its own: process ids repeat from one sandbox to the next.
 */
const functions = `
made() { tr '\\000\\n' '\\n\\000' | grep -E '${byProducts}' | tr '\\000\\n' '\\n\\000'; }
tree_of() (
  git rev-parse --is-inside-work-tree >/dev/null 2>&1 || exit 3
  mine=$(git rev-parse --absolute-git-dir) || exit 3
  own=$(cd "$1" 2>/dev/null && git rev-parse --absolute-git-dir 2>/dev/null) || exit 3
  place=$(mktemp -d "$mine/echs-index.XXXXXX") || exit 3
  trap 'rm -rf "$place"' EXIT
  [ -f "$own/index" ] && cp -p "$own/index" "$place/index"
  GIT_INDEX_FILE="$place/index"; export GIT_INDEX_FILE
  cd "$1" || exit 3
  if [ "$own" != "$mine" ]; then GIT_DIR="$mine"; GIT_WORK_TREE="$PWD"; export GIT_DIR GIT_WORK_TREE; fi
  stage . >/dev/null 2>&1 || exit 4
  if [ "$(git ls-files -z | made | wc -c)" -gt 0 ]; then
    git ls-files -z | made | git update-index -z --force-remove --stdin || exit 4
  fi
  git write-tree
)
exclude_echs() {
  exclude="$(git rev-parse --git-common-dir)/info/exclude"
  mkdir -p "$(dirname "$exclude")"
  grep -qxF '/.echs/' "$exclude" 2>/dev/null || echo '/.echs/' >> "$exclude"
}
`

/** Settings of directories as they were last seen, by whoever runs programs there. */
const seenBy = new WeakMap<Runner, Map<string, SeenSettings>>()

const remember = (runner: Runner, directory: string, seen: SeenSettings): void => {
  const known = seenBy.get(runner) ?? new Map<string, SeenSettings>()
  seenBy.set(runner, known)
  known.delete(directory)
  known.set(directory, seen)
  if (known.size > limits.settingsRememberedMax) dropOldest(known)
}

/** Git in a workspace and what belongs to it. */
export const makeGit = ({ runner }: Pick<Tools, "runner">, workspace: string, signal: AbortSignal): Git => {
  const request = { writable: [workspace], environment: identity }
  const inSandbox = async (held: Runner, place: GitPlace, text: string, args: ReadonlyArray<string>) => {
    const seen = seenBy.get(held)?.get(place.directory)
    const ended = seen && (await QuietGit.seen(held, place, seen).scriptIfSame(text, args, request))
    if (ended !== undefined) return ended
    const git = await QuietGit.open(held, place)
    remember(held, place.directory, git)
    return git.script(text, args, request)
  }
  const script: Git["script"] = async (directory, text, args) => {
    if (runner?.contained !== true) return undefined
    const { gitOutputCharsMax: outputCharsMax, gitTimeoutMs: timeoutMs } = limits
    try {
      const place = { directory, readable: [workspace], signal, outputCharsMax, timeoutMs }
      return await inSandbox(runner, place, `${functions}\n${text}`, args)
    } catch (error) {
      // There is no git, or no such directory: what it would have said is not known.
      if (signal.aborted) throw error
      return undefined
    }
  }
  return {
    run: (directory, args) => script(directory, `git "$@"`, args),
    script,
    writeTree: async (directory) => {
      const ended = await script(directory, `tree_of .`, [])
      return ended?.exit_code === 0 ? ended.stdout.trim() : undefined
    }
  }
}
