// Access to models for all conversations of a process: resolving a name, and per provider one limiter and one
// circuit breaker that everybody shares.
import type * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { ModelCatalog } from "../provider/ModelCatalog.ts"
import { type ProviderError, providerError } from "../provider/ProviderErrors.ts"
import type { Registry, ResolvedModel } from "../provider/Registry.ts"
import {
  type Circuit,
  type Guard,
  type Limiter,
  limiterDefaults,
  makeGuard,
  makeLimiter
} from "../provider/Resilience.ts"

interface Access {
  readonly limiter: Limiter
  readonly guard: Guard
}

export class Models {
  private readonly registry: Registry
  private readonly access = new Map<string, Access>()

  constructor(registry: Registry) {
    this.registry = registry
  }

  get catalog(): ModelCatalog {
    return this.registry.catalog
  }

  get defaultModel(): string {
    return this.registry.defaultModel()
  }

  resolve(fullName: string): Result.Result<ResolvedModel, ProviderError> {
    return Result.mapError(this.registry.resolve(fullName), (error) => {
      const provider = fullName.slice(0, Math.max(0, fullName.indexOf("/"))) || "unknown"
      return providerError({ kind: "invalid_request", provider, message: error.message, code: error._tag })
    })
  }

  /** Runs a conversation's call when it is its turn and the provider is not known to be down. */
  run<A, E>(provider: string, source: string, body: Effect.Effect<A, E>): Effect.Effect<A, E | ProviderError> {
    const { guard, limiter } = this.accessTo(provider)
    return limiter.run(guard.run(source, body))
  }

  /** Holds a call of which nothing was sent until the provider may be tried. */
  ready(provider: string): Effect.Effect<void> {
    return this.accessTo(provider).guard.ready
  }

  /** How the circuits of the providers stand that were asked for something. */
  circuits(): Readonly<Record<string, Circuit>> {
    return Object.fromEntries([...this.access].map(([provider, { guard }]) => [provider, guard.circuit()]))
  }

  private accessTo(provider: string): Access {
    let access = this.access.get(provider)
    if (access === undefined) {
      access = { limiter: makeLimiter(provider, limiterDefaults), guard: makeGuard(provider) }
      this.access.set(provider, access)
    }
    return access
  }
}
