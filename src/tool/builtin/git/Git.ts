// Git for the tools of a workspace: finds the repository, and whose name a commit carries. How git is run so that nothing
// but git runs is in `src/tool/git`.
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { isLedAstray } from "../../../sandbox/OuterRepository.ts"
import { ProcessNotStarted } from "../../../sandbox/process/ProcessErrors.ts"
import type { ProcessEnded, ProcessPort } from "../../../sandbox/process/ProcessPort.ts"
import { SandboxRefused } from "../../../sandbox/SandboxErrors.ts"
import { GitRefused } from "../../git/GitErrors.ts"
import { failed, type GitRequest, QuietGit } from "../../git/QuietGit.ts"
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { retryOnceIfNotStarted } from "../RetryOnce.ts"

export interface GitOptions {
  readonly processes: ProcessPort
  /** Where the identity of the user is looked for. */
  readonly home: string
}

export interface GitPlace {
  /** Without links. */
  readonly root: string
  readonly signal: AbortSignal
}

/** What is asked of git in a workspace: it writes there when it commits, and otherwise nowhere. */
export interface WorkspaceRequest extends Pick<GitRequest, "stdin" | "withHooks" | "settings"> {
  readonly commits?: boolean
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

/** What git and the sandbox refuse is a result for the model. */
const asToolFailure = async <A>(work: () => Promise<A>): Promise<A> => {
  try {
    return await work()
  } catch (error) {
    if (error instanceof GitRefused) throw new ToolFailure(error.code, error.message)
    if (error instanceof ProcessNotStarted || error instanceof SandboxRefused)
      throw new ToolFailure("git_failed", error.message)
    throw error
  }
}

/** The repository of a workspace. */
export class Repository {
  /** The way from the top of the repository to the workspace, with a slash at its end; empty at the top. */
  readonly prefix: string
  private readonly git: QuietGit
  private readonly place: GitPlace
  private readonly userIdentity: () => Promise<Partial<Identity>>

  constructor(
    git: QuietGit,
    place: GitPlace & { readonly prefix: string },
    userIdentity: () => Promise<Partial<Identity>>
  ) {
    this.git = git
    this.place = place
    this.prefix = place.prefix
    this.userIdentity = userIdentity
  }

  /** Runs git, and tells how it ended. */
  attempt(args: ReadonlyArray<string>, request: WorkspaceRequest = {}): Promise<ProcessEnded> {
    return this.held(request, (held) => this.git.run(args, held))
  }

  /** Runs a script, and tells how it ended. */
  script(text: string, args: ReadonlyArray<string>, request: WorkspaceRequest = {}): Promise<ProcessEnded> {
    return this.held(request, (held) => this.git.script(text, args, held))
  }

  /** Runs git; throws git_failed when it does not end with 0. */
  async run(args: ReadonlyArray<string>, request: WorkspaceRequest = {}): Promise<ProcessEnded> {
    const ended = await this.attempt(args, request)
    if (ended.exit_code !== 0) throw failure(args[0] ?? "", ended)
    return ended
  }

  /** Of the repository, else of the user, else our own. */
  async identity(): Promise<Identity> {
    const user = await this.userIdentity()
    const of = (name: string): string | undefined => this.git.settings.get(name) || undefined
    return {
      name: of("user.name") ?? user.name ?? ownIdentity.name,
      email: of("user.email") ?? user.email ?? ownIdentity.email
    }
  }

  private async held(
    { commits = false, ...request }: WorkspaceRequest,
    run: (request: GitRequest) => Promise<ProcessEnded>
  ): Promise<ProcessEnded> {
    const writable = commits ? [this.place.root] : []
    const ended = await asToolFailure(() => retryOnceIfNotStarted(() => run({ ...request, writable })))
    this.place.signal.throwIfAborted()
    return ended
  }
}

export const failure = (command: string, ended: ProcessEnded): ToolFailure =>
  new ToolFailure("git_failed", failed(command, ended).message)

export class Git {
  private readonly options: GitOptions

  constructor(options: GitOptions) {
    this.options = options
  }

  /** Throws not_a_repository when the workspace is in none. */
  async open({ root, signal }: GitPlace): Promise<Repository> {
    const { processes } = this.options
    // Where nothing holds git it would follow whatever the file says.
    if (process.platform === "linux" && isLedAstray(root, this.options.home))
      throw new ToolFailure("not_a_repository", "the file .git leads to a directory that is not of this workspace")
    const place = { directory: root, signal, outputCharsMax: builtinLimits.gitOutputCharsMax }
    const git = await asToolFailure(() => retryOnceIfNotStarted(() => QuietGit.open(processes, place))).catch(
      (error) => {
        signal.throwIfAborted()
        throw error
      }
    )
    const opened = new Repository(git, { root, signal, prefix: "" }, () => this.userIdentity())
    const inside = await opened.attempt(["rev-parse", "--is-inside-work-tree", "--show-prefix"])
    if (inside.end !== "exited") throw failure("rev-parse", inside)
    const [isInside, prefix = ""] = inside.stdout.split("\n")
    if (inside.exit_code !== 0 || isInside !== "true")
      throw new ToolFailure("not_a_repository", "the workspace is no git repository")
    return prefix === "" ? opened : new Repository(git, { root, signal, prefix }, () => this.userIdentity())
  }

  async userIdentity(): Promise<Partial<Identity>> {
    const { home } = this.options
    const files = [join(home, ".config", "git", "config"), join(home, ".gitconfig")]
    const texts = await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")))
    return Object.assign({}, ...texts.map(identityIn))
  }
}
