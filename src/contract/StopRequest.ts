// Completed once an admin asks the server to stop; whoever runs the process waits for it.
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Layer from "effect/Layer"

export class StopRequest extends Context.Service<StopRequest, Deferred.Deferred<string>>()("echs/StopRequest") {
  static readonly layer: Layer.Layer<StopRequest> = Layer.effect(StopRequest, Deferred.make<string>())
}
