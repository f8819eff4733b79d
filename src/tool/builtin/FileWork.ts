// Work on the files of a workspace as effects: what the file system refuses is a typed failure, what was opened is closed
// with its scope, and interruption takes effect between two steps, so that nothing runs on behind whoever interrupted it.
import { type FileHandle, open } from "node:fs/promises"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ToolContext, ToolOutcome } from "../ToolPort.ts"
import { failedWith, failureOf, ToolFailure } from "./BuiltinErrors.ts"
import type { Located, LocateOptions, Workspace } from "./Workspace.ts"

/** What the file system may refuse in the course of things, by the code of its error. */
export class FileRefused extends Error {
  override readonly name = "FileRefused"
  readonly _tag = "FileRefused"
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export type FileProblem = ToolFailure | FileRefused

const problemOf = (error: unknown): FileProblem | undefined => {
  if (error instanceof ToolFailure || error instanceof FileRefused) return error
  if (failureOf(error) === undefined) return undefined
  const { code = "", message } = error as NodeJS.ErrnoException
  return new FileRefused(code, message)
}

const refine = (error: unknown): Effect.Effect<never, FileProblem> => {
  const problem = problemOf(error)
  return problem === undefined ? Effect.die(error) : Effect.fail(problem)
}

const identity = (error: unknown): unknown => error

/** One step: it runs to its end also when it is interrupted. */
export const step = <A>(work: () => Promise<A>): Effect.Effect<A, FileProblem> =>
  Effect.uninterruptible(Effect.catch(Effect.tryPromise({ try: work, catch: identity }), refine))

/** Work without waiting that throws what a tool fails with. */
export const pure = <A>(work: () => A): Effect.Effect<A, FileProblem> =>
  Effect.catch(Effect.try({ try: work, catch: identity }), refine)

/** What a path of the model leads to; it can be relied on until the scope ends. */
export const locate = (
  workspace: Workspace,
  path: string,
  options: LocateOptions
): Effect.Effect<Located, FileProblem, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      step(() => workspace.find(path, options)),
      ({ release }) => Effect.promise(release)
    ),
    ({ located }) => located
  )

/** A file that is closed with the scope. */
export const opened = (at: string, flags: number, mode?: number): Effect.Effect<FileHandle, FileProblem, Scope.Scope> =>
  Effect.acquireRelease(
    step(() => open(at, flags, mode)),
    (file) => Effect.promise(() => file.close())
  )

/** Runs the work of a tool on a path; the failures that can be expected become its result. */
export const told = (
  path: string | undefined,
  work: Effect.Effect<ToolOutcome, FileProblem, Scope.Scope>
): Effect.Effect<ToolOutcome> =>
  Effect.catch(Effect.scoped(work), (problem) => {
    const failure = failureOf(problem, path)
    return failure === undefined ? Effect.die(problem) : Effect.succeed(failedWith(failure))
  })

/** Changes that are made whole once they began: an interruption waits for them, and is told what they came to. */
export const whole = (context: ToolContext, work: Effect.Effect<ToolOutcome>): Effect.Effect<ToolOutcome> =>
  Effect.uninterruptible(Effect.tap(work, (outcome) => Effect.sync(() => context.interruptedWith(outcome))))
