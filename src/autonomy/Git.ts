// Git for the pursuit of goals: it only runs where something holds it, writes to the workspace alone, and never touches
// the index, the branches or the commits of the person whose repository it is. How it is run so that none of the programs
// of a repository starts is in `src/tool/git`.

import type { ProcessEnded } from "../sandbox/process/ProcessPort.ts"
import { type GitRequest, QuietGit } from "../tool/git/QuietGit.ts"
import type { Tools } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"

export interface Git {
  /** Nothing when there is nobody to run it, when nothing would hold it, or when it could not be started. */
  readonly run: (directory: string, args: ReadonlyArray<string>) => Promise<ProcessEnded | undefined>
  /** A shell script whose `$1`, `$2`, … are the arguments. */
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
 * The copy of the index keeps what git knows of unchanged files, so that they are not read again; with its time, by
 * which git tells files that changed in the very moment it looked. Each has a place of its own: process ids repeat
 * from one sandbox to the next.
 */
const writeTreeScript = `
git rev-parse --is-inside-work-tree >/dev/null 2>&1 || exit 3
dir=$(git rev-parse --absolute-git-dir) || exit 3
place=$(mktemp -d "$dir/echs-index.XXXXXX") || exit 3
trap 'rm -rf "$place"' EXIT
index="$place/index"
[ -f "$dir/index" ] && cp -p "$dir/index" "$index"
export GIT_INDEX_FILE="$index"
stage . >/dev/null 2>&1 || exit 4
made() { tr '\\000\\n' '\\n\\000' | grep -E "$1" | tr '\\000\\n' '\\n\\000'; }
if [ "$(git ls-files -z | made "$1" | wc -c)" -gt 0 ]; then
  git ls-files -z | made "$1" | git update-index -z --force-remove --stdin || exit 4
fi
git write-tree
`

/** Git in a workspace and what belongs to it. */
export const makeGit = ({ runner }: Pick<Tools, "runner">, workspace: string, signal: AbortSignal): Git => {
  const inDirectory = async (
    directory: string,
    use: (git: QuietGit, request: GitRequest) => Promise<ProcessEnded>
  ): Promise<ProcessEnded | undefined> => {
    if (runner?.contained !== true) return undefined
    const { gitOutputCharsMax: outputCharsMax, gitTimeoutMs: timeoutMs } = limits
    try {
      const place = { directory, readable: [workspace], signal, outputCharsMax, timeoutMs }
      return await use(await QuietGit.open(runner, place), { writable: [workspace], environment: identity })
    } catch (error) {
      // There is no git, or no such directory: what it would have said is not known.
      if (signal.aborted) throw error
      return undefined
    }
  }
  const script: Git["script"] = (directory, text, args) =>
    inDirectory(directory, (git, request) => git.script(text, args, request))
  return {
    run: (directory, args) => inDirectory(directory, (git, request) => git.run(args, request)),
    script,
    writeTree: async (directory) => {
      const ended = await script(directory, writeTreeScript, [byProducts])
      return ended?.exit_code === 0 ? ended.stdout.trim() : undefined
    }
  }
}
