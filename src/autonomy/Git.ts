// Git, as far as the pursuit of a goal needs it. Runs in the same sandbox as every other command, and not at all where
// there is none; starts none of the programs that the settings of a repository name; and never touches the index, the
// branches or the commits of the person whose repository it is.
import { programSettings, environment as quiet, settingsIn, switchedOff } from "../tool/builtin/git/Git.ts"
import type { ProcessEnded } from "../tool/process/Port.ts"
import type { Tools } from "./Desk.ts"
import { limits } from "./Limits.ts"

export interface Git {
  /** Nothing when there is nobody to run it, when nothing would hold it, or when it could not be started. */
  readonly run: (
    directory: string,
    args: ReadonlyArray<string>,
    options?: { readonly environment?: Environment; readonly stdin?: string }
  ) => Promise<ProcessEnded | undefined>
  /** A shell script whose `$1`, `$2`, … are the arguments. */
  readonly script: (directory: string, script: string, args: ReadonlyArray<string>) => Promise<ProcessEnded | undefined>
  /** The whole working directory as a tree, files that git ignores left out. */
  readonly writeTree: (directory: string) => Promise<string | undefined>
}

const identity = {
  ...quiet,
  GIT_AUTHOR_NAME: "echs",
  GIT_AUTHOR_EMAIL: "echs@localhost",
  GIT_COMMITTER_NAME: "echs",
  GIT_COMMITTER_EMAIL: "echs@localhost"
}

type Environment = Readonly<Record<string, string>>

/** In the environment settings count as on the command line, for every git that a script starts. */
const asEnvironment = (settings: ReadonlyArray<readonly [string, string]>): Environment =>
  Object.fromEntries([
    ["GIT_CONFIG_COUNT", String(settings.length)],
    ...settings.flatMap(([name, value], at) => [
      [`GIT_CONFIG_KEY_${at}`, name],
      [`GIT_CONFIG_VALUE_${at}`, value]
    ])
  ])

/** A merge whose driver does not run is a conflict; an empty driver would keep one side and say nothing. */
const harmless = (name: string): string => (/\.(required|driver)$/iu.test(name) ? "false" : "")

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
GIT_INDEX_FILE="$index" git add -A -- . >/dev/null 2>&1 || exit 4
GIT_INDEX_FILE="$index" git write-tree
`

/** Git in a workspace and what belongs to it. */
export const makeGit = ({ runner }: Pick<Tools, "runner">, workspace: string, signal: AbortSignal): Git => {
  const start = async (
    directory: string,
    argv: ReadonlyArray<string>,
    options: NonNullable<Parameters<Git["run"]>[2]>
  ): Promise<ProcessEnded | undefined> => {
    if (runner?.contained !== true) return undefined
    try {
      return await runner.run({
        argv,
        directory,
        writable: [workspace],
        network: false,
        outputCharsMax: limits.gitOutputCharsMax,
        timeoutMs: limits.gitTimeoutMs,
        signal,
        environment: { ...identity, ...options.environment },
        ...(options.stdin === undefined ? {} : { stdin: options.stdin })
      })
    } catch (error) {
      // There is no git, or no such directory: what it would have said is not known.
      if (signal.aborted) throw error
      return undefined
    }
  }
  /** Which settings of a repository name programs is known only from the repository. */
  const settingsFor = async (directory: string): Promise<Environment | undefined> => {
    const off = asEnvironment(switchedOff)
    const listed = await start(directory, ["git", "config", "--list", "--includes", "-z"], { environment: off })
    if (listed?.exit_code !== 0 || listed.overflow !== undefined) return undefined
    const programs = [...settingsIn(listed.stdout).keys()].filter((name) => programSettings.test(name))
    return asEnvironment([...switchedOff, ...programs.map((name) => [name, harmless(name)] as const)])
  }
  const startQuietly: typeof start = async (directory, argv, options) => {
    const off = await settingsFor(directory)
    return off && start(directory, argv, { ...options, environment: { ...options.environment, ...off } })
  }
  const script: Git["script"] = (directory, text, args) =>
    startQuietly(directory, ["sh", "-c", text, "sh", ...args], {})
  return {
    run: (directory, args, options = {}) => startQuietly(directory, ["git", ...args], options),
    script,
    writeTree: async (directory) => {
      const ended = await script(directory, writeTreeScript, [])
      return ended?.exit_code === 0 ? ended.stdout.trim() : undefined
    }
  }
}
