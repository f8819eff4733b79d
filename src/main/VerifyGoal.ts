// Repeats the proof of a met goal for `echs verify --goal`, in this process: folds the runes up to the goal's end and runs
// its checks in the sandbox of this machine. Needs no server, and changes nothing but its own copy of the files.
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type { Runner } from "../autonomy/GoalContext.ts"
import { type RepeatedProof, verifyGoal } from "../autonomy/VerifyGoal.ts"
import type { GoalProofRequest } from "../cli/verbs/verify.ts"
import type { Environment } from "../config/Environment.ts"
import { fold } from "../machine/evolve/Evolve.ts"
import type { AnyRune } from "../rune/Rune.ts"
import { decodeValue } from "../rune/Rune.ts"
import { Processes, Sandbox } from "../sandbox/Sandbox.ts"
import { workspaceLook } from "../tool/evidence/Look.ts"

type MetRune = Extract<AnyRune, { readonly kind: "plan.goal_met" }>

const isMet = (rune: AnyRune): rune is MetRune => rune.kind === "plan.goal_met"

const repeat = ({ runes, ...asked }: GoalProofRequest, met: MetRune, decoded: ReadonlyArray<AnyRune>) =>
  Effect.gen(function* () {
    const { contained } = yield* Sandbox
    const processes = yield* Processes
    const runner: Runner = {
      contained: contained || asked.isUnheld,
      run: (request) => processes.run(request),
      // Whoever asks for the proof asks for its commands.
      ruling: () => ({ decision: "allow", reason: "the proof is repeated" })
    }
    const upTo = decoded.filter((rune) => rune.event_id <= met.event_id)
    const state = fold(upTo as Parameters<typeof fold>[0], met.conversation_id)
    const workspace = asked.workspace ?? state.session.config.workspace
    const tools = { runner, look: workspaceLook, nowMs: () => met.ts_ms, node: process.execPath }
    return yield* Effect.promise(() => verifyGoal(tools, state, met.payload, { workspace, signal: asked.signal }))
  })

/** Nothing when no goal of these runes was met, or not the one that is named. */
export const repeatProof = async (
  request: GoalProofRequest,
  { homeDirectory: home, variables }: Environment
): Promise<RepeatedProof | undefined> => {
  const decoded = request.runes.map((rune) => Result.getOrThrow(decodeValue(rune)))
  const met = decoded.findLast(
    (rune) => isMet(rune) && (request.planId === undefined || rune.payload.plan_id === request.planId)
  )
  if (met === undefined || !isMet(met)) return undefined
  const directory = await mkdtemp(join(tmpdir(), "echs-verify-"))
  try {
    const place = { dataDirectory: directory, home, variables }
    const machine = Processes.layer(place).pipe(Layer.provideMerge(Sandbox.layer(place)))
    return await Effect.runPromise(Effect.provide(repeat(request, met, decoded), machine))
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
