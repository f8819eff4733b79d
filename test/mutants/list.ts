// Every mutant that `npm run mutants` tries, part by part.
import { conversationMutants } from "./list/conversations.ts"
import { feedMutants } from "./list/feeds.ts"
import { machineMutants } from "./list/machine.ts"
import { policyMutants } from "./list/policy.ts"
import { runelogMutants } from "./list/runelog.ts"
import { sandboxMutants } from "./list/sandbox.ts"
import { storeMutants } from "./list/store.ts"
import type { Mutant } from "./Mutant.ts"

export const mutants: ReadonlyArray<Mutant> = [
  ...runelogMutants,
  ...machineMutants,
  ...policyMutants,
  ...storeMutants,
  ...feedMutants,
  ...sandboxMutants,
  ...conversationMutants
]
