// Git for the tools of a workspace: finds the repository, and whose name a commit carries. How git is run so that nothing
// but git runs is in `src/tool/git`.
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { settled } from "../../../contract/Settled.ts"
import { isLedAstray } from "../../../sandbox/OuterRepository.ts"
import { ProcessNotStarted } from "../../../sandbox/process/ProcessErrors.ts"
import type { ProcessEnded, ProcessPort } from "../../../sandbox/process/ProcessPort.ts"
import { retryIfOutdated } from "../../../sandbox/process/ProcessWork.ts"
import { SandboxRefused } from "../../../sandbox/SandboxErrors.ts"
import { GitRefused } from "../../git/GitErrors.ts"
import { failed, type GitRequest, QuietGit } from "../../git/QuietGit.ts"
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"

export interface GitOptions {
  readonly processes: ProcessPort
  /** Where the identity of the user is looked for. */
  readonly home: string
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

const refused = ({ message }: Error): ToolFailure => new ToolFailure("git_failed", message)

/** Runs git by its promise; what it and the sandbox refuse is a result for the model. */
const runGit = <A>(work: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, ToolFailure> =>
  settled(work).pipe(
    Effect.catch((error) =>
      error instanceof GitRefused || error instanceof ProcessNotStarted || error instanceof SandboxRefused
        ? Effect.fail(error)
        : Effect.die(error)
    ),
    retryIfOutdated,
    Effect.mapError((error) =>
      error instanceof GitRefused ? new ToolFailure(error.code, error.message) : refused(error)
    )
  )

type OpenGit = (signal: AbortSignal) => Promise<QuietGit>

/** The repository of a workspace. */
export class Repository {
  /** The way from the top of the repository to the workspace, with a slash at its end; empty at the top. */
  readonly prefix: string
  private readonly git: QuietGit
  private readonly root: string
  private readonly userIdentity: Effect.Effect<Partial<Identity>>

  constructor(
    git: QuietGit,
    { prefix, root }: { readonly root: string; readonly prefix: string },
    userIdentity: Effect.Effect<Partial<Identity>>
  ) {
    this.git = git
    this.root = root
    this.prefix = prefix
    this.userIdentity = userIdentity
  }

  /** Runs git, and tells how it ended. */
  attempt(args: ReadonlyArray<string>, request: WorkspaceRequest = {}): Effect.Effect<ProcessEnded, ToolFailure> {
    return runGit((signal) => this.git.run(args, this.held(request, signal)))
  }

  /** Runs a script, and tells how it ended. */
  script(
    text: string,
    args: ReadonlyArray<string>,
    request: WorkspaceRequest = {}
  ): Effect.Effect<ProcessEnded, ToolFailure> {
    return runGit((signal) => this.git.script(text, args, this.held(request, signal)))
  }

  /** Runs git; fails with git_failed when it does not end with 0. */
  run(args: ReadonlyArray<string>, request: WorkspaceRequest = {}): Effect.Effect<ProcessEnded, ToolFailure> {
    return Effect.filterOrFail(
      this.attempt(args, request),
      ({ exit_code }) => exit_code === 0,
      (ended) => failure(args[0] ?? "", ended)
    )
  }

  /** Of the repository, else of the user, else our own. */
  get identity(): Effect.Effect<Identity> {
    const of = (name: string): string | undefined => this.git.settings.get(name) || undefined
    return Effect.map(this.userIdentity, (user) => ({
      name: of("user.name") ?? user.name ?? ownIdentity.name,
      email: of("user.email") ?? user.email ?? ownIdentity.email
    }))
  }

  private held({ commits = false, ...request }: WorkspaceRequest, signal: AbortSignal): GitRequest {
    return { ...request, writable: commits ? [this.root] : [], signal }
  }
}

export const failure = (command: string, ended: ProcessEnded): ToolFailure => refused(failed(command, ended))

export class Git {
  private readonly options: GitOptions

  constructor(options: GitOptions) {
    this.options = options
  }

  /** Fails with not_a_repository when the workspace, given without links, is in none. */
  readonly open: (root: string) => Effect.Effect<Repository, ToolFailure> = Effect.fnUntraced(
    { self: this },
    function* (root) {
      const { home, processes } = this.options
      // Where nothing holds git it would follow whatever the file says.
      if (process.platform === "linux" && isLedAstray(root, home))
        return yield* Effect.fail(
          new ToolFailure("not_a_repository", "the file .git leads to a directory that is not of this workspace")
        )
      const opening: OpenGit = (signal) =>
        QuietGit.open(processes, { directory: root, signal, outputCharsMax: builtinLimits.gitOutputCharsMax })
      const git = yield* runGit(opening)
      const opened = new Repository(git, { root, prefix: "" }, this.userIdentity)
      const inside = yield* opened.attempt(["rev-parse", "--is-inside-work-tree", "--show-prefix"])
      if (inside.end !== "exited") return yield* Effect.fail(failure("rev-parse", inside))
      const [isInside, prefix = ""] = inside.stdout.split("\n")
      if (inside.exit_code !== 0 || isInside !== "true")
        return yield* Effect.fail(new ToolFailure("not_a_repository", "the workspace is no git repository"))
      return prefix === "" ? opened : new Repository(git, { root, prefix }, this.userIdentity)
    }
  )

  private get userIdentity(): Effect.Effect<Partial<Identity>> {
    const { home } = this.options
    const files = [join(home, ".config", "git", "config"), join(home, ".gitconfig")]
    const textOf = (file: string): Effect.Effect<string> => Effect.promise(() => readFile(file, "utf8").catch(() => ""))
    return Effect.map(Effect.forEach(files, textOf), (texts) => Object.assign({}, ...texts.map(identityIn)))
  }
}
