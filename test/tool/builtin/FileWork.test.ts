// Goal: work on files ends in one of three ways: done, refused with a reason, or a defect; an interruption waits for a
// change that began and is told what it came to. Method: the real file system, and fibers that a test interrupts.
import { existsSync, readFileSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { describe, expect, it } from "vitest"
import { FileRefused, locate, step, told } from "#src/tool/builtin/FileWork.ts"
import { writeFileTool } from "#src/tool/builtin/files/Write.ts"
import { workspaceAccess } from "#src/tool/builtin/ToolSchema.ts"
import type { ToolContext, ToolOutcome } from "#src/tool/ToolPort.ts"
import { usePlace } from "../../support/tool/ToolPlace.ts"

const place = usePlace()
const door = workspaceAccess({})

describe("a step of work on files", () => {
  it("fails with the code of what the file system refuses", async () => {
    const missing = step(() => readFile(join(place.workspace, "missing.txt")))
    const refused = await Effect.runPromise(Effect.flip(missing))
    expect(refused).toBeInstanceOf(FileRefused)
    expect(refused).toMatchObject({ _tag: "FileRefused", code: "ENOENT" })
  })

  it("dies of what nobody expects", async () => {
    const broken = step(() => Promise.reject(new TypeError("broken")))
    const exit = await Effect.runPromiseExit(told("a.txt", broken))
    expect(Exit.isFailure(exit) && exit.cause.reasons.map(({ _tag }) => _tag)).toEqual(["Die"])
  })

  it("is told with the path when it was refused", async () => {
    const missing = step(() => readFile(join(place.workspace, "missing.txt"), "utf8"))
    const outcome = await Effect.runPromise(
      told(
        "missing.txt",
        Effect.map(missing, () => ({ status: "success" }))
      )
    )
    expect(outcome).toMatchObject({
      status: "error",
      error: { code: "file_error", message: "missing.txt: there is no such file or directory" }
    })
  })
})

it("a place that was found is let go with its scope, also when the work fails", async () => {
  const workspace = await Effect.runPromise(door.open({ workspace: place.workspace }))
  const released: Array<string> = []
  const find = workspace.find.bind(workspace)
  workspace.find = async (...given) => {
    const { located, release } = await find(...given)
    return { located, release: () => release().then(() => void released.push(located.shown)) }
  }
  const failing = Effect.andThen(locate(workspace, "a.txt", { for: "reading" }), Effect.die("over"))
  await Effect.runPromiseExit(Effect.scoped(failing))
  expect(released).toEqual(["a.txt"])
})

it("a write that is interrupted once it began is made whole, and what it came to is told", async () => {
  const said: Array<ToolOutcome> = []
  const context = { workspace: place.workspace, interruptedWith: (outcome: ToolOutcome) => void said.push(outcome) }
  const input = { path: "new/a.txt", content: "all of it\n" }
  const fiber = Effect.runFork(writeFileTool({ door }).run(input, context as unknown as ToolContext))
  await Effect.runPromise(Fiber.interrupt(fiber))
  expect(existsSync(join(place.workspace, "new", "a.txt"))).toBe(true)
  expect(readFileSync(join(place.workspace, "new", "a.txt"), "utf8")).toBe(input.content)
  expect(said).toEqual([{ status: "success", output: "new/a.txt: 10 bytes written, a new file" }])
})
