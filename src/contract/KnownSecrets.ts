// Everything secret that the server was told, as a mask: it stays out of what agents see and of what is kept.
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { makeSecretMask, type SecretMask } from "../rune/Secrets.ts"

export class KnownSecrets extends Context.Service<KnownSecrets, SecretMask>()("echs/KnownSecrets") {
  static readonly layer = (values: Iterable<string | undefined>): Layer.Layer<KnownSecrets> =>
    Layer.sync(KnownSecrets, () => makeSecretMask(values))
}
