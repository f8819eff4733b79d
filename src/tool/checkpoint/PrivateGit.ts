// The git directory of our own for one workspace: an index, rules that switch attributes off, and no settings of anybody.
// The objects of a repository are shared with it; a workspace in no repository keeps its own here. It lies in the data
// directory, where no command of an agent reaches it.
import { createHash } from "node:crypto"
import { mkdirSync, realpathSync, writeFileSync } from "node:fs"
import { join, relative, resolve } from "node:path"
import { isLedAstray } from "../../sandbox/OuterRepository.ts"
import type { ProcessEnded } from "../../sandbox/process/ProcessPort.ts"
import { isInside } from "../builtin/Workspace.ts"
import { QuietGit, type RunProcess } from "../git/QuietGit.ts"
import type { Setting } from "../git/Settings.ts"
import { checkpointLimits as limits } from "./CheckpointLimits.ts"

export interface PrivateGitOptions {
  readonly processes: RunProcess
  /** Where git directories of workspaces are kept. */
  readonly directory: string
  /** What ECHS keeps itself: never part of a checkpoint. */
  readonly ownDirectories: ReadonlyArray<string>
  readonly home: string
}

interface Repository {
  readonly top: string
  /** Of this working tree, and of all worktrees together. */
  readonly own: string
  readonly common: string
  readonly format: string
}

/** Big, made by programs, and made again by them: left out where no repository says what is ignored. */
const usuallyIgnored = ["node_modules/", ".venv/", "__pycache__/", "target/", ".cache/"]

const attributes = "* !text !eol !crlf -ident !filter !working-tree-encoding\n"

/** What the repository of a workspace is, if it is in one. */
const repositoryOf = async (
  { home, processes }: PrivateGitOptions,
  root: string,
  signal: AbortSignal
): Promise<Repository | undefined> => {
  if (process.platform === "linux" && isLedAstray(root, home)) return undefined
  const { outputCharsMax, timeoutMs } = limits
  const git = await QuietGit.open(processes, { directory: root, signal, outputCharsMax, timeoutMs })
  const asked = ["--is-inside-work-tree", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"]
  const found = await git.run(["rev-parse", ...asked, "--show-object-format"])
  const [inside, top = "", own = "", common = "", format = ""] = found.stdout.split("\n")
  if (found.exit_code !== 0 || inside !== "true" || !isInside(top, root)) return undefined
  return { top, own, common: resolve(root, common), format }
}

const literal = (path: string): string => path.replace(/[\\*?[\]!# ]/gu, "\\$&")

const layOut = (place: string, top: string, repository: Repository | undefined, own: ReadonlyArray<string>): void => {
  for (const name of ["objects", "refs", "info", "echs"]) mkdirSync(join(place, name), { recursive: true, mode: 0o700 })
  const sha256 = repository?.format === "sha256"
  const put = (name: string, text: string): void => writeFileSync(join(place, name), text, { mode: 0o600 })
  put("HEAD", "ref: refs/heads/none\n")
  put(
    "config",
    [
      `[core]\n\trepositoryformatversion = ${sha256 ? 1 : 0}\n\tfilemode = true\n\tbare = false\n\tsymlinks = true`,
      "\tignorecase = false\n\tautocrlf = false\n\tprotectNTFS = false\n\tprotectHFS = false\n\tsplitIndex = true",
      // Objects of our own may be lost with the machine; those in somebody's repository must not be torn.
      ...(repository === undefined ? ["\tfsync = none"] : []),
      ...(sha256 ? ["[extensions]\n\tobjectformat = sha256"] : []),
      ""
    ].join("\n")
  )
  put("info/attributes", attributes)
  const hidden = own.filter((path) => isInside(top, path)).map((path) => `/${literal(relative(top, path))}/`)
  put("info/exclude", [".echs/", ...hidden, ...(repository === undefined ? usuallyIgnored : []), ""].join("\n"))
}

const excludes = (common: string): ReadonlyArray<Setting> =>
  common === "" ? [] : [["core.excludesFile", join(common, "info", "exclude")]]

interface Parts {
  /** The first arguments of every script. */
  readonly given: ReadonlyArray<string>
  readonly settings: ReadonlyArray<Setting>
}

/** Files of equal size and age can be exchanged for each other: everything that the system knows of a file is looked at. */
const looking: ReadonlyArray<Setting> = [
  ["core.checkStat", "default"],
  ["core.trustctime", "true"]
]

export class PrivateGit {
  readonly root: string
  private readonly git: QuietGit
  private readonly given: ReadonlyArray<string>
  private readonly settings: ReadonlyArray<Setting>

  private constructor(root: string, git: QuietGit, parts: Parts) {
    this.root = root
    this.git = git
    this.given = parts.given
    this.settings = parts.settings
  }

  static async open(options: PrivateGitOptions, workspace: string, signal: AbortSignal): Promise<PrivateGit> {
    const root = realpathSync(workspace)
    const repository = await repositoryOf(options, root, signal)
    const top = repository?.top ?? root
    const name = createHash("sha256")
      .update(`${root}\n${repository?.own ?? ""}`)
      .digest("hex")
      .slice(0, 32)
    mkdirSync(options.directory, { recursive: true, mode: 0o700 })
    const place = join(realpathSync(options.directory), name)
    layOut(place, top, repository, options.ownDirectories)
    const { outputCharsMax, timeoutMs } = limits
    const environment = {
      GIT_DIR: place,
      GIT_WORK_TREE: top,
      ...(repository === undefined ? {} : { GIT_OBJECT_DIRECTORY: join(repository.common, "objects") }),
      GIT_AUTHOR_NAME: "echs",
      GIT_AUTHOR_EMAIL: "echs@localhost",
      GIT_COMMITTER_NAME: "echs",
      GIT_COMMITTER_EMAIL: "echs@localhost"
    }
    const where = { directory: root, signal, outputCharsMax, timeoutMs, environment, writable: [place] }
    const git = await QuietGit.open(options.processes, where)
    const { common = "", own = "" } = repository ?? {}
    const filesMax = repository === undefined ? limits.filesMax : limits.repositoryFilesMax
    return new PrivateGit(root, git, {
      given: [place, own, common, String(limits.fileKibMax), String(filesMax)],
      settings: [...looking, ...excludes(common)]
    })
  }

  /** Runs a script whose arguments after those of all are these. */
  run(script: string, args: ReadonlyArray<string>, signal: AbortSignal): Promise<ProcessEnded> {
    const { root, settings } = this
    return this.git.script(script, [...this.given, ...args], { writable: [root], settings, signal })
  }
}
