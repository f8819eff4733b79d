// The sandbox that was found on this machine, the processes that run in it, and the directories that may be worked in, as
// services. Whatever a server that was killed left running is ended before anything starts, and everything ends with the
// scope.
import { join } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SandboxFacts } from "../contract/ServerFacts.ts"
import { detectSandbox } from "./Detect.ts"
import { allowedEnvironment } from "./Environment.ts"
import { endLeftovers, ownerOf } from "./process/Leftovers.ts"
import { makeProcesses } from "./process/Processes.ts"
import type { ProcessPort } from "./process/ProcessPort.ts"
import type { SandboxPort } from "./SandboxPort.ts"
import { type WorkspaceCheck, workspaceCheck, workspaceIssue } from "./WorkspaceCheck.ts"

export interface SandboxLayerOptions {
  readonly dataDirectory: string
  readonly home: string
  readonly variables: Readonly<Record<string, string | undefined>>
  /** What commands find besides what they need, and what they never find. */
  readonly readable?: ReadonlyArray<string>
  readonly hidden?: ReadonlyArray<string>
}

const detect = (options: SandboxLayerOptions): Effect.Effect<SandboxPort> =>
  Effect.promise(() => {
    const { dataDirectory, hidden = [], home, readable = [], variables } = options
    return detectSandbox({ dataDirectory, home, path: variables["PATH"] ?? "", variables, readable, hidden })
  })

export class Sandbox extends Context.Service<Sandbox, SandboxPort>()("echs/Sandbox") {
  static readonly layer = (options: SandboxLayerOptions): Layer.Layer<Sandbox | SandboxFacts> =>
    Layer.effectContext(
      Effect.map(detect(options), (sandbox) => {
        const { contained, detail, level } = sandbox
        return Context.make(Sandbox, sandbox).pipe(Context.add(SandboxFacts, { contained, detail, level }))
      })
    )
}

export class Processes extends Context.Service<Processes, ProcessPort>()("echs/Processes") {
  static readonly layer = ({ dataDirectory, variables }: SandboxLayerOptions): Layer.Layer<Processes, never, Sandbox> =>
    Layer.effect(
      Processes,
      Effect.gen(function* () {
        const sandbox = yield* Sandbox
        const owner = ownerOf(dataDirectory)
        yield* Effect.promise(() => endLeftovers(owner))
        const environment = allowedEnvironment(variables)
        const overflowDirectory = join(dataDirectory, "overflow")
        return yield* Effect.acquireRelease(
          Effect.sync(() => makeProcesses({ sandbox, environment, overflowDirectory, owner })),
          (processes) => Effect.promise(() => processes.close())
        )
      })
    )
}

/** Which directories can be workspaces. */
export class Workspaces extends Context.Service<
  Workspaces,
  {
    /** Why a directory may not be one. */
    readonly check: WorkspaceCheck
    /** Why nobody can begin to work there: it may not be one, or is not there. */
    readonly issue: WorkspaceCheck
  }
>()("echs/Workspaces") {
  static readonly layer = (facts: { readonly home: string }): Layer.Layer<Workspaces> =>
    Layer.sync(Workspaces, () => {
      const check = workspaceCheck(facts)
      return { check, issue: workspaceIssue(check) }
    })

  /** All of them, also those that are not there. */
  static readonly any: Layer.Layer<Workspaces> = Layer.succeed(Workspaces, {
    check: () => undefined,
    issue: () => undefined
  })
}
