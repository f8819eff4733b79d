// Checkpoints of workspaces: what the files are now, recorded before something may change them, and brought back later.
// One at a time in a workspace, whoever asks. A workspace whose files could not be recorded is left alone for a while.
import { join } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { TakenFiles } from "../../machine/Command.ts"
import { checkpointsFolder } from "../../sandbox/Detect.ts"
import type { ProcessEnded } from "../../sandbox/process/ProcessPort.ts"
import { Processes } from "../../sandbox/Sandbox.ts"
import { failed, type RunProcess } from "../git/QuietGit.ts"
import { CheckpointRefused } from "./CheckpointErrors.ts"
import { checkpointLimits as limits } from "./CheckpointLimits.ts"
import { exits, previewScript, restoreScript, takeScript } from "./CheckpointScripts.ts"
import { PrivateGit, type PrivateGitOptions } from "./PrivateGit.ts"

export interface Place {
  readonly workspace: string
  readonly conversation_id: string
}

/** What bringing a tree back would do to one file. */
export interface FileChange {
  /** As git prints it: quoted where it is not plain text. */
  readonly path: string
  readonly change: "create" | "delete" | "modify" | "mode" | "type"
}

export interface Preview {
  /** The files as they are now. */
  readonly tree: string
  readonly files_total: number
  readonly files: ReadonlyArray<FileChange>
  /** From what is there to what would be; cut off where it is long. */
  readonly patch: string
}

export interface CheckpointPort {
  readonly take: (place: Place) => Effect.Effect<TakenFiles, CheckpointRefused>
  /** Takes up what changed while nobody waits for it, so that the next checkpoint has little to do. */
  readonly prepare: (place: Place) => Effect.Effect<void>
  readonly preview: (workspace: string, tree: string) => Effect.Effect<Preview, CheckpointRefused>
  /** Brings a tree back over the files that were seen; tells how many files changed. */
  readonly restore: (
    workspace: string,
    trees: { readonly seen: string; readonly back_to: string }
  ) => Effect.Effect<number, CheckpointRefused>
}

interface Held {
  readonly lock: Semaphore.Semaphore
  users: number
  git?: PrivateGit | undefined
  /** No try before this time. */
  restUntilMs: number
  refusal?: CheckpointRefused
}

const refused = (problem: CheckpointRefused["problem"], message: string): CheckpointRefused =>
  new CheckpointRefused({ problem, message })

const problemOf = (what: string, ended: ProcessEnded): CheckpointRefused => {
  if (ended.end === "exited" && ended.exit_code === exits.noGit)
    return refused("no_git", "git is not installed; install it to be able to undo")
  if (ended.exit_code === exits.tooMany)
    return refused("too_many_files", "too many new or changed files; name what is not to be kept in .gitignore")
  if (ended.exit_code === exits.changed)
    return refused("files_changed", "files changed since they were looked at; look again")
  return refused("git_failed", failed(what, ended).message)
}

const changeOf = (line: string): FileChange | undefined => {
  const [, before, after, letter, path] = /^:(\d+) (\d+) \S+ \S+ (\w)\S*\t(.*)$/u.exec(line) ?? []
  if (path === undefined) return undefined
  const kinds = { A: "create", D: "delete", T: "type" } as const
  const known = kinds[letter as keyof typeof kinds]
  if (known !== undefined) return { path, change: known }
  const [, , blobBefore, blobAfter] = line.split(" ")
  return { path, change: before !== after && blobBefore === blobAfter ? "mode" : "modify" }
}

const previewIn = (printed: string): Preview => {
  const [tree = "", total = "0", ...rest] = printed.split("\n")
  const end = rest.indexOf("")
  const files = rest.slice(0, end).flatMap((line) => changeOf(line) ?? [])
  return { tree, files_total: Number(total), files, patch: rest.slice(end + 1).join("\n") }
}

/** The ref that keeps the checkpoints of a conversation. */
const refOf = (conversationId: string): string => `refs/echs/checkpoints/${conversationId}`

/** What is held of each workspace; those that nobody uses are forgotten, the oldest first. */
const makePlaces = (): ((workspace: string) => Held) => {
  const places = new Map<string, Held>()
  return (workspace) => {
    const held = places.get(workspace) ?? { lock: Semaphore.makeUnsafe(1), users: 0, restUntilMs: 0 }
    places.delete(workspace)
    places.set(workspace, held)
    if (places.size > limits.placesMax) {
      const idle = [...places].find(([, { users }]) => users === 0)
      if (idle !== undefined && idle[1] !== held) places.delete(idle[0])
    }
    return held
  }
}

/** One at a time in a workspace. */
const alone = <A, E>(held: Held, work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      held.users += 1
    }),
    () => held.lock.withPermit(work),
    () =>
      Effect.sync(() => {
        held.users -= 1
      })
  )

export const makeCheckpoints = (options: PrivateGitOptions, scope: Scope.Scope): CheckpointPort => {
  const heldAt = makePlaces()
  const script = (held: Held, workspace: string, what: string, text: string, args: ReadonlyArray<string>) =>
    Effect.tryPromise({
      try: async (signal) => {
        held.git ??= await PrivateGit.open(options, workspace, signal)
        return held.git.run(text, args, signal)
      },
      catch: (error) => refused("git_failed", error instanceof Error ? error.message : String(error))
    }).pipe(
      Effect.flatMap((ended) => (ended.exit_code === 0 ? Effect.succeed(ended) : Effect.fail(problemOf(what, ended)))),
      // What is known of the place may be the reason: it is looked at again.
      Effect.tapError(() =>
        Effect.sync(() => {
          held.git = undefined
        })
      )
    )
  const take = Effect.fn("Checkpoints.take")(function* ({ conversation_id: id, workspace }: Place) {
    const held = heldAt(workspace)
    const startedMs = performance.now()
    if (held.refusal !== undefined && startedMs < held.restUntilMs) return yield* held.refusal
    const ended = yield* alone(held, script(held, workspace, "checkpoint", takeScript, [refOf(id), id])).pipe(
      Effect.tapError((refusal) =>
        Effect.sync(() => {
          held.refusal = refusal
          held.restUntilMs = performance.now() + limits.restAfterFailureMs
        })
      )
    )
    const [tree = "", commit = "", left = "0"] = ended.stdout.trim().split(" ")
    const durationMs = Math.round(performance.now() - startedMs)
    return { workspace, tree, commit, left_out: Number(left), duration_ms: durationMs }
  })
  const preview = Effect.fn("Checkpoints.preview")(function* (workspace: string, tree: string) {
    const held = heldAt(workspace)
    const args = [tree, String(limits.previewFilesMax), String(limits.previewPatchBytesMax)]
    const ended = yield* alone(held, script(held, workspace, "preview", previewScript, args))
    return previewIn(ended.stdout)
  })
  const restore = Effect.fn("Checkpoints.restore")(function* (
    workspace: string,
    { back_to: backTo, seen }: { readonly seen: string; readonly back_to: string }
  ) {
    const held = heldAt(workspace)
    const ended = yield* alone(held, script(held, workspace, "restore", restoreScript, [backTo, seen]))
    return Number(ended.stdout.trim())
  })
  const prepare = (place: Place): Effect.Effect<void> => Effect.asVoid(Effect.forkIn(Effect.ignore(take(place)), scope))
  return { take, prepare, preview, restore }
}

export interface CheckpointOptions {
  readonly dataDirectory: string
  readonly home: string
}

export const checkpointPlace = (
  { dataDirectory, home }: CheckpointOptions,
  processes: RunProcess
): PrivateGitOptions => ({
  processes,
  home,
  directory: join(dataDirectory, checkpointsFolder),
  ownDirectories: [dataDirectory]
})

/** Without them nothing can be undone. */
export class Checkpoints extends Context.Service<Checkpoints, CheckpointPort | undefined>()("echs/Checkpoints") {
  static readonly none: Layer.Layer<Checkpoints> = Layer.succeed(Checkpoints, undefined)

  static readonly layer = (options: CheckpointOptions): Layer.Layer<Checkpoints, never, Processes> =>
    Layer.effect(
      Checkpoints,
      Effect.gen(function* () {
        return makeCheckpoints(checkpointPlace(options, yield* Processes), yield* Effect.scope)
      })
    )
}
