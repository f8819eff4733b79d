// Runs git so that nothing but git runs: hooks, monitors, pagers, editors, signing programs, external diffs, filters and
// whatever else the settings of a repository could start are switched off. Settings of the user are read for the
// identity alone.
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { ProcessNotStarted } from "../../process/Errors.ts"
import type { ProcessEnded, ProcessPort, ProcessRequest } from "../../process/Port.ts"
import { SandboxRefused } from "../../sandbox/Errors.ts"
import { againIfNotStarted } from "../Again.ts"
import { ToolFailure } from "../Errors.ts"
import { builtinLimits } from "../Limits.ts"
import { repositoryOfWorktree } from "./Linked.ts"

/** Settings that start programs, as they are when they start none. */
export const switchedOff: ReadonlyArray<readonly [string, string]> = [
  ["core.hooksPath", "/dev/null"],
  ["core.fsmonitor", "false"],
  ["core.pager", "cat"],
  ["core.editor", "false"],
  ["core.askPass", "false"],
  ["core.sshCommand", "false"],
  ["core.gitProxy", "false"],
  ["core.attributesFile", "/dev/null"],
  ["sequence.editor", "false"],
  ["credential.helper", ""],
  ["diff.external", ""],
  ["interactive.diffFilter", ""],
  ["commit.gpgSign", "false"],
  ["tag.gpgSign", "false"],
  ["log.showSignature", "false"],
  ["gpg.program", "false"],
  ["gpg.ssh.program", "false"],
  ["gc.auto", "0"],
  ["maintenance.auto", "false"],
  ["protocol.allow", "never"],
  ["submodule.recurse", "false"],
  ["diff.ignoreSubmodules", "all"],
  ["status.submoduleSummary", "false"],
  ["safe.bareRepository", "explicit"],
  // Owners look different inside the sandbox; they must not count as changes, nor hide any.
  ["core.checkStat", "minimal"],
  ["core.trustctime", "false"],
  // The programs of a repository are off; whose it is makes no difference then.
  ["safe.directory", "*"]
]

/** Families of settings whose members name programs; which there are is known only from the repository. */
export const programSettings =
  /^(filter\..+\.(clean|smudge|process|required)|diff\..+\.(command|textconv)|merge\..+\.driver)$/i

const asArguments = (settings: ReadonlyArray<readonly [string, string]>): ReadonlyArray<string> =>
  settings.flatMap(([name, value]) => ["-c", `${name}=${value}`])

export const environment: Readonly<Record<string, string>> = {
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
  GIT_LITERAL_PATHSPECS: "1",
  GIT_PAGER: "cat",
  GIT_EDITOR: "false",
  GIT_NO_LAZY_FETCH: "1",
  LC_ALL: "C.UTF-8"
}

export interface GitOptions {
  readonly processes: ProcessPort
  /** Where the identity of the user is looked for. */
  readonly home: string
}

export interface GitPlace {
  /** Without links. */
  readonly root: string
  readonly signal: AbortSignal
  /** Of a worktree whose repository lies outside the root; found when it is opened. */
  readonly repository?: string
}

export interface GitRequest {
  readonly stdin?: string
  /** The hooks of the repository run, because somebody granted it. */
  readonly withHooks?: boolean
  /** It may write to a repository outside the root. */
  readonly commits?: boolean
  readonly settings?: ReadonlyArray<readonly [string, string]>
}

export interface Identity {
  readonly name: string
  readonly email: string
}

/** Who commits where nobody else is named. */
const ownIdentity: Identity = { name: "ECHS", email: "echs@localhost" }

const section = /^\s*\[\s*([\w.-]+)(?:\s+"[^"]*")?\s*\]/
const setting = /^\s*(\w+)\s*=\s*"?(.*?)"?\s*$/

/** The identity that a settings file of git names, if it does. */
export const identityIn = (text: string): Partial<Identity> => {
  let isUser = false
  const found: { name?: string; email?: string } = {}
  for (const line of text.split("\n")) {
    const begins = section.exec(line)
    if (begins !== null) isUser = begins[1]?.toLowerCase() === "user" && !line.includes('"')
    const [, key = "", value = ""] = setting.exec(line) ?? []
    const name = key.toLowerCase()
    if (isUser && value !== "" && (name === "name" || name === "email")) found[name] = value
  }
  return found
}

/** Settings of a repository, as `git config --list -z` prints them; the last of a name counts. */
export const settingsIn = (listed: string): ReadonlyMap<string, string> =>
  new Map(
    listed
      .split("\0")
      .filter((entry) => entry !== "")
      .map((entry) => {
        const end = entry.indexOf("\n")
        return end < 0 ? [entry, ""] : [entry.slice(0, end), entry.slice(end + 1)]
      })
  )

export const failed = (command: string, { end, exit_code, stderr, stdout }: ProcessEnded): ToolFailure => {
  const why = stderr.trim() || stdout.trim() || (end === "exited" ? `exit code ${exit_code}` : `it was ended: ${end}`)
  return new ToolFailure("git_failed", `git ${command}: ${why}`)
}

/** A repository whose settings were looked at and made harmless. */
export class Repository {
  private readonly git: Git
  private readonly place: GitPlace
  private readonly settings: ReadonlyMap<string, string>

  constructor(git: Git, place: GitPlace, settings: ReadonlyMap<string, string>) {
    this.git = git
    this.place = place
    this.settings = settings
  }

  /** Runs git, and tells how it ended. */
  attempt(args: ReadonlyArray<string>, request: GitRequest = {}): Promise<ProcessEnded> {
    const named = [...this.settings.keys()].filter((name) => programSettings.test(name))
    const emptied = named.map((name) => [name, name.endsWith(".required") ? "false" : ""] as const)
    return this.git.start(this.place, args, { ...request, settings: [...emptied, ...(request.settings ?? [])] })
  }

  /** Runs git; throws git_failed when it does not end with 0. */
  async run(args: ReadonlyArray<string>, request: GitRequest = {}): Promise<ProcessEnded> {
    const ended = await this.attempt(args, request)
    if (ended.exit_code !== 0) throw failed(args[0] ?? "", ended)
    return ended
  }

  /** Of the repository, else of the user, else our own. */
  async identity(): Promise<Identity> {
    const user = await this.git.userIdentity()
    const of = (name: string): string | undefined => this.settings.get(name) || undefined
    return {
      name: of("user.name") ?? user.name ?? ownIdentity.name,
      email: of("user.email") ?? user.email ?? ownIdentity.email
    }
  }
}

export class Git {
  private readonly options: GitOptions

  constructor(options: GitOptions) {
    this.options = options
  }

  /** Throws not_a_repository when the workspace is in none. */
  async open({ root, signal }: GitPlace): Promise<Repository> {
    const repository = await repositoryOfWorktree(root)
    const place: GitPlace = { root, signal, ...(repository === undefined ? {} : { repository }) }
    const inside = await this.start(place, ["rev-parse", "--is-inside-work-tree"], {})
    if (inside.end !== "exited") throw failed("rev-parse", inside)
    if (inside.exit_code !== 0 || inside.stdout.trim() !== "true")
      throw new ToolFailure("not_a_repository", "the workspace is no git repository")
    const listed = await this.start(place, ["config", "--list", "--includes", "-z"], {})
    if (listed.exit_code !== 0) throw failed("config", listed)
    if (listed.overflow !== undefined) throw new ToolFailure("git_failed", "the repository has too many settings")
    return new Repository(this, place, settingsIn(listed.stdout))
  }

  async userIdentity(): Promise<Partial<Identity>> {
    const { home } = this.options
    const files = [join(home, ".config", "git", "config"), join(home, ".gitconfig")]
    const texts = await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")))
    return Object.assign({}, ...texts.map(identityIn))
  }

  async start(place: GitPlace, args: ReadonlyArray<string>, request: GitRequest): Promise<ProcessEnded> {
    const beyond = place.repository === undefined ? [] : [place.repository]
    // What hooks do is not for us to say: they are kept out of what lies outside the root.
    const isLetIn = request.commits === true && request.withHooks !== true
    const off = request.withHooks === true ? switchedOff.filter(([name]) => name !== "core.hooksPath") : switchedOff
    try {
      const command: ProcessRequest = {
        argv: ["git", "--no-pager", ...asArguments([...off, ...(request.settings ?? [])]), ...args],
        directory: place.root,
        writable: [place.root, ...(isLetIn ? beyond : [])],
        readable: isLetIn ? [] : beyond,
        network: false,
        environment,
        outputCharsMax: builtinLimits.gitOutputCharsMax,
        signal: place.signal,
        ...(request.stdin === undefined ? {} : { stdin: request.stdin })
      }
      const ended = await againIfNotStarted(() => this.options.processes.run(command))
      place.signal.throwIfAborted()
      return ended
    } catch (error) {
      if (error instanceof ProcessNotStarted || error instanceof SandboxRefused)
        throw new ToolFailure("git_failed", error.message)
      throw error
    }
  }
}
