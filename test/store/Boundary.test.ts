// Goal: expected errors keep their type, anything else is a defect, and every error says what is the matter. Method:
// promises that reject with either.
import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { describe, expect, it } from "vitest"
import { attempt, tagsOf } from "#src/store/Boundary.ts"
import * as Errors from "#src/store/StoreErrors.ts"

class Known extends Data.TaggedError("Known")<{ readonly fact: string }> {}
class Other extends Data.TaggedError("Other")<{ readonly fact: string }> {}

const attemptKnown = attempt<Known>(tagsOf<Known>({ Known: true }))
const exitOf = (error: unknown) => Effect.runPromiseExit(attemptKnown(() => Promise.reject(error)))

describe("the boundary", () => {
  it("passes values and expected errors", async () => {
    expect(await Effect.runPromise(attemptKnown(async () => 7))).toBe(7)
    expect(
      await Effect.runPromise(Effect.flip(attemptKnown(() => Promise.reject(new Known({ fact: "f" })))))
    ).toMatchObject({
      _tag: "Known",
      fact: "f"
    })
  })

  it.each([new Other({ fact: "f" }), new TypeError("bug"), { _tag: "Known" }, null, undefined, "text"])(
    "makes a defect of %s",
    async (error) => {
      const exit = await exitOf(error)
      expect(Exit.isFailure(exit) && Cause.hasDies(exit.cause)).toBe(true)
    }
  )
})

describe("an error of the store", () => {
  const sha256 = "a".repeat(64)
  const conversationId = "conv_0000000000000001"
  it.each<readonly [Error, string]>([
    [new Errors.ConversationUnknown({ conversationId }), `there is no conversation ${conversationId}`],
    [
      new Errors.RuneInvalid({ conversationId, eventId: 3, kind: "k", reason: "r" }),
      `rune 3 (k) of ${conversationId} cannot be written: r`
    ],
    [
      new Errors.RuneUnreadable({ conversationId, eventId: 3, reason: "r" }),
      `event 3 of ${conversationId} is not a rune: r`
    ],
    [new Errors.BlobUnknown({ sha256 }), `there is no blob ${sha256}`],
    [new Errors.BlobDamaged({ sha256, file: "f", reason: "r" }), `blob ${sha256} is damaged: r (f)`],
    [new Errors.BlobTooLarge({ bytes: 2, bytesMax: 1 }), "a blob of 2 bytes or more exceeds the limit of 1"],
    [
      new Errors.ArchiveDamaged({ conversationId, file: "f", reason: "r" }),
      `the archive of ${conversationId} is damaged: r (f)`
    ],
    [new Errors.NotArchivable({ conversationId, reason: "r" }), `${conversationId} cannot be archived: r`],
    [
      new Errors.ForkInvalid({ conversationId, atEventId: 9, reason: "r" }),
      `${conversationId} cannot be forked at event 9: r`
    ],
    [new Errors.ImportInvalid({ line: 4, reason: "r" }), "line 4 cannot be imported: r"],
    [new Errors.ListInvalid({ field: "limit", reason: "r" }), "limit: r"]
  ])("states its fact: %s", (error, message) => {
    expect(error.message).toBe(message)
  })
})
