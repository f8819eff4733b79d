// Opens once, when the server listens. What may wait until then does: the catalog catches up and unfinished work resumes
// behind it, so that a client finds an open port first.
import * as Context from "effect/Context"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"

export class ServerReady extends Context.Service<ServerReady, Latch.Latch>()("echs/ServerReady") {
  static readonly layer: Layer.Layer<ServerReady> = Layer.effect(ServerReady, Latch.make(false))
}
