// The tools of a server as a service: the built-in ones, those of MCP servers and those that clients run, behind one
// router with the policy, the sandbox and whoever has a say before a call.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { OutputBlobs } from "../contract/Blobs.ts"
import { CallGates } from "../contract/CallGates.ts"
import { KnownSecrets } from "../contract/KnownSecrets.ts"
import { ClientTools } from "../contract/RemoteTools.ts"
import { evaluate } from "../policy/Evaluate.ts"
import { ServerRules } from "../policy/PolicyFile.ts"
import { Sandbox, Workspaces } from "../sandbox/Sandbox.ts"
import { BuiltinToolSet, maskedBlobs } from "./builtin/BuiltinToolSet.ts"
import { McpServers } from "./mcp/McpServers.ts"
import { RemoteToolRegistry } from "./remote/RemoteToolRegistry.ts"
import { fixedSource } from "./Source.ts"
import type { ToolSource } from "./Tool.ts"
import type { ToolPort } from "./ToolPort.ts"
import { makeRouter } from "./ToolRouter.ts"

type RouterParts = BuiltinToolSet | McpServers | RemoteToolSource | ServerRules | Sandbox | Workspaces | CallGates

/** Tools that clients run. */
export class RemoteToolSource extends Context.Service<RemoteToolSource, RemoteToolRegistry>()("echs/RemoteToolSource") {
  /** `reserved` are names that belong to others besides the built-in tools. */
  static readonly layer = (options: {
    readonly reserved: ReadonlyArray<string>
    /** How long a client that runs tools may be away. */
    readonly returnWithinMs?: number | undefined
  }): Layer.Layer<RemoteToolSource | ClientTools, never, BuiltinToolSet> =>
    Layer.effectContext(
      Effect.gen(function* () {
        const { reserved, returnWithinMs } = options
        const names = new Set([...(yield* BuiltinToolSet).map(({ name }) => name), ...reserved])
        const more = returnWithinMs === undefined ? {} : { returnWithinMs }
        const registry = yield* Effect.acquireRelease(
          Effect.sync(() => new RemoteToolRegistry({ isReserved: (name) => names.has(name), ...more })),
          (opened) => Effect.sync(() => opened.close())
        )
        return Context.make(RemoteToolSource, registry).pipe(Context.add(ClientTools, registry))
      })
    )
}

export class ToolRouter extends Context.Service<ToolRouter, ToolPort>()("echs/ToolRouter") {
  /** `helpers` are offered between the built-in tools and those from elsewhere. */
  static readonly layer = (
    helpers: ToolSource
  ): Layer.Layer<ToolRouter, never, RouterParts | OutputBlobs | KnownSecrets> =>
    Layer.effect(
      ToolRouter,
      Effect.gen(function* () {
        const rules = yield* ServerRules
        const { beforeCall } = yield* CallGates
        return makeRouter({
          sources: [fixedSource(yield* BuiltinToolSet), helpers, yield* McpServers, yield* RemoteToolSource],
          evaluate,
          secrets: yield* KnownSecrets,
          sandbox: yield* Sandbox,
          blobs: yield* maskedBlobs,
          workspaceCheck: (yield* Workspaces).check,
          ...(beforeCall === undefined ? {} : { beforeCall }),
          get rules() {
            return rules.current()
          }
        })
      })
    )
}
