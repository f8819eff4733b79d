/** Goal: ids have their form, never repeat in practice, and repeat exactly for a seed. */
import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import * as IdSource from "#src/rune/IdSource.ts"
import * as Ids from "#src/rune/Ids.ts"

describe("ids", () => {
  it("have their prefix and pattern", () => {
    const source = IdSource.secureIdSource()
    expect(Ids.isRuneId(Ids.makeRuneId(source))).toBe(true)
    expect(Ids.isConversationId(Ids.makeConversationId(source))).toBe(true)
    expect(Ids.isAgentId(Ids.makeAgentId(source))).toBe(true)
    expect(Ids.makeRequestId(source)).toMatch(/^req_[0-9a-f]{16}$/u)
    expect(Ids.makePlanId(source)).toMatch(/^plan_[0-9a-f]{16}$/u)
    expect(Ids.isTurnId(Ids.turnIdOf(1))).toBe(true)
    expect(Ids.isCallId(Ids.callIdOf(1))).toBe(true)
    expect(Ids.hookRunIdOf(3)).toBe("hookrun_3")
  })

  it("are distinct across pool refills", () => {
    const source = IdSource.secureIdSource()
    const drawn = new Set(Array.from({ length: 5000 }, source.hex16))
    expect(drawn.size).toBe(5000)
  })

  it("repeat for the same seed and differ for another", () => {
    const draw = (seed: number) => Array.from({ length: 50 }, IdSource.seededIdSource(seed).hex16)
    expect(draw(7)).toEqual(draw(7))
    expect(draw(7)).not.toEqual(draw(8))
    expect(new Set(draw(7)).size).toBe(50)
    for (const hex of draw(-3)) expect(hex).toMatch(/^[0-9a-f]{16}$/u)
  })

  it("come from a service", async () => {
    const drawOne = Effect.map(IdSource.Ids, (source) => source.hex16())
    const seeded = Effect.provide(drawOne, IdSource.layerSeeded(1))
    expect(await Effect.runPromise(seeded)).toBe(IdSource.seededIdSource(1).hex16())
    expect(await Effect.runPromise(Effect.provide(drawOne, IdSource.layerSecure))).toHaveLength(16)
  })

  it("give back their ordinal", () => {
    expect(Ids.ordinalOf("turn_12")).toBe(12)
    expect(Ids.ordinalOf("toolu_abc")).toBe(0)
    expect(Ids.ordinalOf("call_007")).toBe(0)
  })

  it("refuse what could leave a directory", () => {
    for (const bad of ["conv_", "conv_../up12345", "conv_ABCDEFGH", "conv_12345678/x", "conv_1234567\n"]) {
      expect(Ids.isConversationId(bad)).toBe(false)
    }
  })
})
