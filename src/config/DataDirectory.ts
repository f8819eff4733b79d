// The data directory of a server as a service: made for its owner alone, with the token that clients on this machine read,
// and with the note by which they find the server. The note goes with the scope.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { claimDirectory, ensureToken, removeServerInfo, type ServerInfo, writeServerInfo } from "./ServerFiles.ts"

export interface DataDirectoryOptions {
  readonly dataDirectory: string
  /** Used instead of the token file. */
  readonly token?: string | undefined
}

export class DataDirectory extends Context.Service<
  DataDirectory,
  {
    readonly path: string
    readonly token: string
    /** Writes down where the server is. */
    readonly announce: (info: ServerInfo) => Effect.Effect<void>
  }
>()("echs/DataDirectory") {
  static readonly layer = ({ dataDirectory, token }: DataDirectoryOptions): Layer.Layer<DataDirectory> =>
    Layer.effect(
      DataDirectory,
      Effect.gen(function* () {
        const scope = yield* Effect.scope
        claimDirectory(dataDirectory)
        return {
          path: dataDirectory,
          token: token ?? ensureToken(dataDirectory),
          announce: (info) =>
            Effect.andThen(
              Effect.sync(() => writeServerInfo(dataDirectory, info)),
              Scope.addFinalizer(
                scope,
                Effect.sync(() => removeServerInfo(dataDirectory, info.pid))
              )
            )
        }
      })
    )
}
