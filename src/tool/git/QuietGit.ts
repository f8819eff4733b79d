// The one way in which this program runs git: in the sandbox, so that nothing but git runs. Hooks, monitors, pagers,
// editors, signing programs, external diffs, filters and whatever else the settings of a repository could start are
// switched off; git is given no way to start a git in a submodule; what only reads may not write.
import { createHash } from "node:crypto"
import type { ProcessEnded, ProcessPort, ProcessRequest } from "../../sandbox/process/ProcessPort.ts"
import { GitRefused } from "./GitErrors.ts"
import { gitLimits } from "./GitLimits.ts"
import { changedSettings, gitAlone, prelude, sameSettings } from "./Scripts.ts"
import {
  asEnvironment,
  checkTaken,
  type Environment,
  harmless,
  quietEnvironment,
  type Setting,
  settingsIn,
  switchedOff
} from "./Settings.ts"

export interface GitPlace {
  /** Where git starts. */
  readonly directory: string
  /** Also there for git, and not to be changed. */
  readonly readable?: ReadonlyArray<string>
  readonly signal: AbortSignal
  readonly outputCharsMax: number
  readonly timeoutMs?: number
  /** Where git finds its repository, if not in the directory; and what else it is told in every run. */
  readonly environment?: Environment
  /** What every run may write to. */
  readonly writable?: ReadonlyArray<string>
}

export interface GitRequest {
  /** Ends this run; that of the place does, unless told. */
  readonly signal?: AbortSignal
  /** What it may write to; nothing unless told. */
  readonly writable?: ReadonlyArray<string>
  readonly stdin?: string
  /** The hooks of the repository run, because somebody granted it. */
  readonly withHooks?: boolean
  readonly settings?: ReadonlyArray<Setting>
  readonly environment?: Environment
}

export type RunProcess = Pick<ProcessPort, "run">

const shell = (script: string, args: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...["/bin/sh", "-c", script, "sh"],
  ...args
]

const start = (
  processes: RunProcess,
  place: GitPlace,
  argv: ReadonlyArray<string>,
  request: GitRequest
): Promise<ProcessEnded> => {
  const { environment = {}, settings = [], stdin } = request
  const writable = [...(request.writable ?? []), ...(place.writable ?? [])]
  const off = request.withHooks === true ? switchedOff.filter(([name]) => name !== "core.hooksPath") : switchedOff
  const { timeoutMs } = place
  const command: ProcessRequest = {
    argv,
    directory: place.directory,
    writable,
    readable: [place.directory, ...(place.readable ?? [])].filter((path) => !writable.includes(path)),
    network: false,
    gitAlone: request.withHooks !== true,
    environment: { ...place.environment, ...environment, ...quietEnvironment, ...asEnvironment([...off, ...settings]) },
    outputCharsMax: place.outputCharsMax,
    signal: request.signal ?? place.signal,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(stdin === undefined ? {} : { stdin })
  }
  return processes.run(command)
}

/** Why a run of git did not do what it should, in git's own words where there are any. */
export const failed = (command: string, { end, exit_code, stderr, stdout }: ProcessEnded): GitRefused => {
  const why = stderr.trim() || stdout.trim() || (end === "exited" ? `exit code ${exit_code}` : `it was ended: ${end}`)
  return new GitRefused("git_failed", `git ${command}: ${why}`)
}

/** Settings as they were seen, with a mark of all of them. */
export interface SeenSettings {
  readonly settings: ReadonlyMap<string, string>
  readonly mark: string
}

/** A directory whose settings were looked at and made harmless. */
export class QuietGit {
  readonly settings: ReadonlyMap<string, string>
  /** To be handed to `seen`. */
  readonly mark: string
  private readonly processes: RunProcess
  private readonly place: GitPlace
  private readonly overrides: ReadonlyArray<Setting>

  private constructor(processes: RunProcess, place: GitPlace, { mark, settings }: SeenSettings) {
    this.processes = processes
    this.place = place
    this.settings = settings
    this.mark = mark
    this.overrides = harmless(settings)
  }

  /** Looks at the settings that hold in the directory, in a repository or in none; throws GitRefused. */
  static async open(processes: RunProcess, place: GitPlace): Promise<QuietGit> {
    const looking = { ...place, outputCharsMax: gitLimits.settingsCharsMax }
    const listed = await start(processes, looking, shell(gitAlone, ["config", "--list", "--includes", "-z"]), {})
    if (listed.exit_code !== 0) throw failed("config", listed)
    if (listed.overflow !== undefined) throw new GitRefused("git_failed", "the repository has too many settings")
    const settings = settingsIn(listed.stdout)
    checkTaken(settings)
    return new QuietGit(processes, place, { settings, mark: createHash("sha256").update(listed.stdout).digest("hex") })
  }

  /** With settings that were looked at before: only for `scriptIfSame`, which finds out whether they still hold. */
  static seen(processes: RunProcess, place: GitPlace, seen: SeenSettings): QuietGit {
    return new QuietGit(processes, place, seen)
  }

  /** Runs git, and tells how it ended. */
  run(args: ReadonlyArray<string>, request: GitRequest = {}): Promise<ProcessEnded> {
    // Hooks are programs that find others; everything else that could be found is switched off.
    const argv = request.withHooks === true ? ["git", ...args] : shell(gitAlone, args)
    return this.start(argv, request)
  }

  /** Runs a shell script whose `$1`, `$2`, … are the arguments, with `git` and `stage` of the prelude. */
  script(text: string, args: ReadonlyArray<string>, request: GitRequest = {}): Promise<ProcessEnded> {
    return this.start(shell(`${prelude}\n${text}`, args), request)
  }

  /** The same in one start of a sandbox, and nothing when the settings are no longer those that were looked at. */
  async scriptIfSame(
    text: string,
    args: ReadonlyArray<string>,
    request: GitRequest = {}
  ): Promise<ProcessEnded | undefined> {
    const environment = { ...request.environment, ECHS_SETTINGS: this.mark, ECHS_SWITCHED_OFF: `${switchedOff.length}` }
    const script = `${prelude}\n${sameSettings}\n${text}`
    const ended = await this.start(shell(script, args), { ...request, environment })
    return ended.exit_code === changedSettings ? undefined : ended
  }

  private start(argv: ReadonlyArray<string>, request: GitRequest): Promise<ProcessEnded> {
    const settings = [...this.overrides, ...(request.settings ?? [])]
    return start(this.processes, this.place, argv, { ...request, settings })
  }
}
