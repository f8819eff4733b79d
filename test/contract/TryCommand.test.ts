// A refusal is an answer; every other failure stays a failure.
import { expect, test } from "vitest"
import { CommandRefused } from "../../src/contract/CommandErrors.ts"
import { tryCommand } from "../../src/contract/TryCommand.ts"
import type { Command } from "../../src/machine/Command.ts"
import type { CallId } from "../../src/rune/Ids.ts"

const command: Command = { _tag: "CrashCall", call_id: "call_1" as CallId, message: "it broke" }

test("an accepted command has no refusal", async () => {
  const seen: Array<Command> = []
  const refusal = await tryCommand({ submit: async (one) => seen.push(one) }, command)
  expect(refusal).toBeUndefined()
  expect(seen).toEqual([command])
})

test("a refused command comes back as its refusal", async () => {
  const refusal = { code: "invalid_state", message: "the turn is over" } as const
  const submit = () => Promise.reject(new CommandRefused({ refusal, command: command._tag }))
  expect(await tryCommand({ submit }, command)).toEqual(refusal)
})

test("a failure that is no refusal rejects", async () => {
  const submit = () => Promise.reject(new Error("the disk is full"))
  await expect(tryCommand({ submit }, command)).rejects.toThrow("the disk is full")
})
