// Programs as effects: interruption ends the whole tree of a program and waits until nothing of it is left; what keeps a
// program from starting is a typed failure.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { SandboxRefused } from "../SandboxErrors.ts"
import { ProcessNotStarted } from "./ProcessErrors.ts"
import type { ProcessEnded, ProcessPort, ProcessRequest, RunningProcess, StartRequest } from "./ProcessPort.ts"

export type NotBegun = ProcessNotStarted | SandboxRefused

const refine = (error: unknown): Effect.Effect<never, NotBegun> =>
  error instanceof ProcessNotStarted || error instanceof SandboxRefused ? Effect.fail(error) : Effect.die(error)

/** Runs a program to its end. What becomes of one that is interrupted, with what it printed, says `onInterrupted`. */
export const runProcess = (
  processes: Pick<ProcessPort, "run">,
  request: Omit<ProcessRequest, "signal">,
  onInterrupted: (ended: ProcessEnded) => Effect.Effect<void> = () => Effect.void
): Effect.Effect<ProcessEnded, NotBegun> =>
  Effect.callback<ProcessEnded, NotBegun>((resume, signal) => {
    const running = processes.run({ ...request, signal })
    running.then(
      (ended) => resume(Effect.succeed(ended)),
      (error: unknown) => resume(refine(error))
    )
    return Effect.flatMap(
      Effect.promise(() => running.catch(() => undefined)),
      (ended) => (ended === undefined ? Effect.void : onInterrupted(ended))
    )
  })

/** Starts a program that lives until it ends or its scope does. */
export const startProcess = (
  processes: Pick<ProcessPort, "start">,
  request: StartRequest
): Effect.Effect<RunningProcess, NotBegun, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.catch(Effect.tryPromise({ try: () => processes.start(request), catch: (error) => error }), refine),
    (running) => Effect.promise(() => running.kill())
  )

/** Tries once more when the sandbox could not be set up: what it was planned from may have gone in between. */
export const retryIfOutdated = <A, E extends { readonly _tag: string }>(
  work: Effect.Effect<A, E | NotBegun>
): Effect.Effect<A, E | NotBegun> =>
  Effect.retry(work, {
    times: 1,
    while: (error) => error instanceof ProcessNotStarted && error.code === "sandbox_failed"
  })
