// Goal: interruption of a call whose work is a promise aborts the signal, waits for the work, and loses nothing that it
// still says. Method: work that a test ends by hand.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { expect, test } from "vitest"
import { evaluate } from "#src/policy/Evaluate.ts"
import { makeSecretMask } from "#src/rune/Secrets.ts"
import { promisedOutcome } from "#src/tool/PromiseWork.ts"
import { fixedSource } from "#src/tool/Source.ts"
import type { Tool } from "#src/tool/Tool.ts"
import type { SignalContext, ToolContext, ToolOutcome } from "#src/tool/ToolPort.ts"
import { makeRouter } from "#src/tool/ToolRouter.ts"
import { callOf, conversationWith, usePlace } from "../support/tool/ToolPlace.ts"

const place = usePlace()

const listening = () => {
  const said: Array<ToolOutcome> = []
  const context = { interruptedWith: (outcome: ToolOutcome) => void said.push(outcome) } as unknown as ToolContext
  return { context, said }
}

/** Ends with the outcome when it is aborted, after a few turns of the event loop. */
const afterAbort = (outcome: ToolOutcome) => (context: Pick<SignalContext, "signal">) =>
  new Promise<ToolOutcome>((resolve) =>
    context.signal.addEventListener("abort", () => setImmediate(() => setImmediate(() => resolve(outcome))))
  )

test("an interruption waits for the end of the work, and what it came to is told", async () => {
  const { context, said } = listening()
  const fiber = Effect.runFork(promisedOutcome(context, afterAbort({ status: "cancelled", output: "half" })))
  await Effect.runPromise(Fiber.interrupt(fiber))
  expect(said).toEqual([{ status: "cancelled", output: "half" }])
  expect(Exit.hasInterrupts(await Effect.runPromise(Fiber.await(fiber)))).toBe(true)
})

test("work that ends by itself tells nothing besides its outcome", async () => {
  const { context, said } = listening()
  const outcome = await Effect.runPromise(promisedOutcome(context, async () => ({ status: "success", output: "all" })))
  expect(outcome).toEqual({ status: "success", output: "all" })
  expect(said).toEqual([])
})

test("work that throws, before or after its promise is there, is a defect", async () => {
  const { context } = listening()
  const early = promisedOutcome(context, () => {
    throw new Error("early")
  })
  await expect(Effect.runPromise(early)).rejects.toThrow("early")
  await expect(Effect.runPromise(promisedOutcome(context, () => Promise.reject(new Error("late"))))).rejects.toThrow(
    "late"
  )
})

test("what an interrupted tool tells passes the router without its secrets", async () => {
  const { context, said } = listening()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const tool: Tool = {
    name: "slow",
    description: "waits",
    parameters: { type: "object" },
    effect_class: "pure",
    mutating: false,
    provenance: "builtin",
    access: () => ({}),
    preview: () => Effect.succeed({ title: "slow" }),
    run: (_input, given) => {
      begin()
      return promisedOutcome(given, afterAbort({ status: "cancelled", output: "key hunter2hunter2" }))
    }
  }
  const router = makeRouter({
    sources: [fixedSource([tool])],
    evaluate,
    sandbox: { level: "none", contained: false },
    secrets: makeSecretMask(["hunter2hunter2"])
  })
  const run = router.run(conversationWith({ workspace: place.workspace }), callOf("slow", {}), {
    ...context,
    attempt: 1
  } as unknown as ToolContext)
  const fiber = Effect.runFork(run)
  await begun
  await Effect.runPromise(Fiber.interrupt(fiber))
  expect(said).toHaveLength(1)
  expect(said[0]).toMatchObject({ status: "cancelled" })
  expect(said[0]?.output).not.toContain("hunter2")
})
