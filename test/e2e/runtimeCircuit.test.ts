// Goal: a provider that is down for several conversations is left alone: calls are held, with the reason for everybody to see,
// and go on when it is back; what one conversation meets touches nobody else. Method: the real runtime with conversations side by
// side, a provider that a test turns off and on, and time that runs faster.
import { describe, expect, it } from "vitest"
import { attentionItems } from "#src/machine/view/Supervision.ts"
import type { ModelProvider } from "#src/provider/Provider.ts"
import { limits } from "#src/provider/ProviderLimits.ts"
import type { Registry } from "#src/provider/Registry.ts"
import { fastRunFork } from "../support/runtime/clocks.ts"
import { always, cut, fail, say, scenarios } from "../support/runtime/scenarios.ts"
import { type Talk, useWorlds } from "../support/runtime/World.ts"

const worlds = useWorlds()

const played = scenarios({
  up: [always(say("ok"))],
  down: [always(fail("connection"))],
  slow: [always(fail("timeout"))],
  broken: [always(say("half"), cut)]
})

/** One provider for all; `down` decides which model is really played. */
const open = async (down: () => boolean) => {
  let asked = 0
  const wrapRegistry = (registry: Registry): Registry => ({
    ...registry,
    resolve: (name) => {
      const found = registry.resolve(name)
      if (found._tag === "Failure") return found
      const { provider } = found.success
      const switched: ModelProvider = {
        name: provider.name,
        stream: (request, options) => {
          asked += 1
          const model = request.model === "up" && down() ? "down" : request.model
          return provider.stream({ ...request, model }, options)
        }
      }
      return { ...found, success: { ...found.success, provider: switched } } as typeof found
    }
  })
  const world = await worlds.open({ scenarios: played, wrapRegistry, runFork: fastRunFork(100) })
  return { world, asked: () => asked }
}

const ended = async (talk: Talk) => (await talk.turns(1)).kind

describe("a circuit", () => {
  it.each(["slow", "broken"])("does not open for calls that are %s, in however many conversations", async (model) => {
    const { world } = await open(() => false)
    const config = { model: `scripted/${model}`, limits: { max_llm_retries: 3 } }
    const bad = await Promise.all([1, 2, 3, 4].map(() => world.create(config)))
    await Promise.all(bad.map((talk) => talk.post("go")))
    expect(await Promise.all(bad.map(ended))).toEqual(bad.map(() => "turn.error"))
    expect(world.conversations.circuits()["scripted"]).toMatchObject({ circuit: "closed", failures: 0 })
    const other = await world.create({ model: "scripted/up" })
    await other.post("go")
    expect(await ended(other)).toBe("turn.completed")
  })

  it("does not open for what one conversation alone meets, however often", async () => {
    const { world } = await open(() => false)
    const bad = await world.create({ model: "scripted/down", limits: { max_llm_retries: 3 * limits.breakerFailures } })
    await bad.post("go")
    expect(await ended(bad)).toBe("turn.error")
    const other = await world.create({ model: "scripted/up", limits: { max_llm_retries: 0 } })
    await other.post("go")
    expect(await ended(other)).toBe("turn.completed")
  })

  it("that is open holds every call, says why, and lets them go on when the provider is back", async () => {
    let isDown = true
    const { asked, world } = await open(() => isDown)
    const first = await Promise.all([1, 2, 3].map(() => world.create({ model: "scripted/up" })))
    await Promise.all(first.map((talk) => talk.post("go")))
    await world.until(() => world.conversations.circuits()["scripted"]?.circuit === "open")
    // Not one retry is allowed here, and yet nothing fails: nothing was sent.
    const late = await world.create({ model: "scripted/up", limits: { max_llm_retries: 0 } })
    await late.post("go")
    const { payload } = await late.until("turn.retry_scheduled")
    expect(payload).toMatchObject({ error_type: "circuit_open", held: true, provider: "scripted", attempt: 1 })
    expect(late.of("turn.model_requested")).toEqual([])
    expect(attentionItems(await late.state())).toMatchObject([
      { type: "provider", title: expect.stringContaining("waiting for scripted (circuit_open)") }
    ])
    const before = asked()
    isDown = false
    expect(await Promise.all([...first, late].map(ended))).toEqual([...first, late].map(() => "turn.completed"))
    expect(asked() - before).toBeLessThanOrEqual(first.length + 3)
    expect(world.conversations.circuits()["scripted"]).toMatchObject({ circuit: "closed", held: 0 })
    expect(world.crashes).toEqual([])
  })

  it("can be waited for, interrupted at any moment", async () => {
    const { world } = await open(() => true)
    const talks = await Promise.all([1, 2, 3].map(() => world.create({ model: "scripted/up" })))
    await Promise.all(talks.map((talk) => talk.post("go")))
    await world.until(() => talks.some((talk) => talk.of("turn.retry_scheduled").some(({ payload }) => payload.held)))
    await Promise.all(talks.map((talk) => talk.interrupt()))
    expect(await Promise.all(talks.map(ended))).toEqual(talks.map(() => "turn.interrupted"))
    expect(world.crashes).toEqual([])
  })
})
