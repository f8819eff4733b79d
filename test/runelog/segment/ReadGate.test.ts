// Goal: readers share, one who replaces is alone. Method: bodies that are held open by hand.
import { describe, expect, it } from "vitest"
import { ReadGate } from "#runelog/segment/ReadGate.ts"

const held = () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { body: () => promise, release: resolve }
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await undefined
}

describe("a gate", () => {
  it("lets readers in together and one who replaces only when they are gone", async () => {
    const gate = new ReadGate()
    const order: Array<string> = []
    const [first, second, replacing] = [held(), held(), held()]
    const readers = [first, second].map(({ body }, at) => gate.shared(body).then(() => order.push(`reader ${at}`)))
    const exclusive = gate.exclusive(() => {
      order.push("alone")
      return replacing.body()
    })
    const late = gate.shared(async () => void order.push("late reader"))
    const later = gate.exclusive(async () => void order.push("alone again"))
    await turns()
    expect(order).toEqual([])
    first.release()
    await turns()
    expect(order).toEqual(["reader 0"])
    second.release()
    await turns()
    expect(order.slice(0, 3)).toEqual(expect.arrayContaining(["reader 0", "reader 1", "alone"]))
    expect(order).toHaveLength(3)
    replacing.release()
    await Promise.all([...readers, exclusive, late, later])
    expect(order.slice(3).sort()).toEqual(["alone again", "late reader"])
  })

  it("opens again when a body fails", async () => {
    const gate = new ReadGate()
    await expect(gate.exclusive(() => Promise.reject(new Error("no")))).rejects.toThrow("no")
    await expect(gate.shared(() => Promise.reject(new Error("nor this")))).rejects.toThrow("nor this")
    expect(await gate.exclusive(async () => 1)).toBe(1)
  })
})
