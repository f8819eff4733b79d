// Operations on the policy of the server, and on permissions that people gave.
import * as Effect from "effect/Effect"
import { attempt } from "../../conversation/Attempt.ts"
import type { Policies } from "../../conversation/Policies.ts"
import { CurrentOperation, change, type HandlersOf, type Operating } from "./CurrentOperation.ts"
import { InvalidState } from "./OperationErrors.ts"

const noFile = new InvalidState("the program that holds this server decides about its policy")

const policies: Operating<Policies> = CurrentOperation.use(({ policies: offered }) =>
  offered === undefined ? Effect.fail(noFile) : Effect.succeed(offered)
)

const orNoFile = <A>(value: A | undefined): Effect.Effect<A, InvalidState> =>
  value === undefined ? Effect.fail(noFile) : Effect.succeed(value)

export const policyHandlers: HandlersOf<"policy" | "grant"> = {
  "policy.get": () => Effect.flatMap(policies, (offered) => orNoFile(offered.show())),
  "policy.test": ({ conversation_id: id, policy }) =>
    Effect.flatMap(policies, (offered) => attempt(() => offered.test(policy, id))),
  "policy.set": ({ policy, revision }) =>
    Effect.gen(function* () {
      const offered = yield* policies
      return yield* orNoFile(yield* attempt(() => offered.save(policy, revision)))
    }),
  "grant.list": ({ conversation_id: id }) => Effect.flatMap(policies, (offered) => attempt(() => offered.grants(id))),
  "grant.revoke": ({ conversation_id: id, grant_event_id: grant }) =>
    CurrentOperation.use(({ principal }) =>
      change(id, { _tag: "UpdateConfig", changes: {}, revoked_grants: [grant], principal: principal.name })
    )
}
