// Goal: a new transition is four files, all named by the compiler, as CONTRIBUTING says. Method: a copy of the source tree
// gets the command shown there, first in its table, then in the files that the compiler names, and decides it.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { complainedAbout, recipe, ToyTree } from "../support/ToyTree.ts"

const [command = "", cell = "", refusal = "", request = "", decider, sample] = recipe("How to add a transition")
const checked = ["src/machine/decide/Decide.ts", "test/support/machineSamples.ts"]
const table = "src/machine/table/Session.ts"

let tree: ToyTree
beforeAll(() => {
  tree = new ToyTree("test")
  tree.insertAfter(table, "export type SessionCommand =", command)
  tree.insertAfter("src/machine/Command.ts", "export type SessionRequest =", request)
})
afterAll(() => tree.remove())

const script = `
import { decide } from "./src/machine/decide/Decide.ts"
import { emptyConversation } from "./src/machine/State.ts"
import { evolve } from "./src/machine/evolve/Evolve.ts"

const held = (status) => {
  const state = { ...emptyConversation("conv_1"), head: 1 }
  state.session = { ...state.session, status }
  const verdict = decide(state, { _tag: "Hold" }, { at_ms: 5 })
  if (verdict._tag === "Refused") return verdict.refusal.code
  const rune = { ...verdict.drafts[0], schema_version: 1, event_id: 2, ts_ms: 5, conversation_id: "conv_1" }
  return evolve(state, rune).session.status
}
console.log(JSON.stringify([held("suspended"), held("active")]))
`

describe("a transition that CONTRIBUTING shows", { timeout: 240_000 }, () => {
  it("makes the compiler name every row without its cell, the decider and the sample", () => {
    const output = tree.typecheck(...checked)
    expect(complainedAbout(output)).toEqual(["src/machine/decide/session.ts", table, "test/support/machineSamples.ts"])
    expect(output.match(/^src\/machine\/table\/Session\.ts\(/gm)).toHaveLength(7)
  })

  it("compiles once those have it, lands where its cell says and is refused elsewhere", () => {
    for (const status of ["created", "active", "paused", "suspended", "closing", "closed", "archived"]) {
      tree.insertAfter(table, `\n  ${status}: {`, status === "suspended" ? cell : refusal)
    }
    tree.insertAfter(
      "src/machine/decide/session.ts",
      "export const sessionDeciders: Deciders<SessionRequest> = {",
      decider
    )
    tree.insertAfter("test/support/machineSamples.ts", "const sessionSamples: Samples<SessionCommand> = {", sample)
    expect(tree.typecheck(...checked)).toBe("")
    expect(tree.run(script)).toEqual(["paused", "invalid_state"])
  })
})
