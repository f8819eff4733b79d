// Goal: an edit changes the one place that is meant, keeps everything else to the byte, and says with line numbers why it
// does not. Method: real files, golden messages, and a file that is changed by somebody else in between.
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import { builtinLimits } from "#src/tool/builtin/BuiltinLimits.ts"
import { unifiedDiff } from "#src/tool/builtin/edit/Diff.ts"
import { editFileTool } from "#src/tool/builtin/edit/Edit.ts"
import { type Expected, replaceFile } from "#src/tool/builtin/files/Replace.ts"
import { requireTextFile } from "#src/tool/builtin/files/TextFile.ts"
import { workspaceAccess } from "#src/tool/builtin/ToolSchema.ts"
import { growth } from "../support/cost.ts"
import { previewOf } from "../support/tool/runTool.ts"
import { usePlace } from "../support/tool/ToolPlace.ts"

const place = usePlace()
const door = workspaceAccess({})
const tool = editFileTool({ door })
const edit = (old_text: string, new_text: string, more: Readonly<Record<string, unknown>> = {}) =>
  place.run(tool, { path: "a.ts", old_text, new_text, ...more })
const put = (text: string | Buffer): void => writeFileSync(join(place.workspace, "a.ts"), text)
const text = (): string => readFileSync(join(place.workspace, "a.ts"), "utf8")

const code = "function one() {\n  return 1\n}\n\nfunction two() {\n  return 1\n}\n"

describe("an edit", () => {
  it("changes one place and says where", async () => {
    put(code)
    expect(await edit("two() {\n  return 1", "two() {\n  return 2")).toEqual({
      status: "success",
      output: "a.ts: changed at line 5"
    })
    expect(text()).toBe(code.replace("two() {\n  return 1", "two() {\n  return 2"))
  })

  it("changes all places when that is meant", async () => {
    put(code)
    expect((await edit("return 1", "return $&", { replace_all: true })).output).toBe(
      "a.ts: changed at 2 places, lines 2, 6"
    )
    expect(text()).toBe(code.replaceAll("return 1", () => "return $&"))
  })

  it.each([
    [
      "return 1",
      "anchor_ambiguous",
      "a.ts contains old_text 2 times, at lines 2, 6; give more of the text around it, or replace_all"
    ],
    ["return 3", "anchor_missing", "a.ts does not contain old_text; no line of the file is like its first line"],
    ["    return 1", "anchor_missing", "a.ts does not contain old_text; it differs in space from line 2, 6"],
    [
      "function two() {\n  return 3",
      "anchor_missing",
      "a.ts does not contain old_text; its first line is there, but not what follows, or space differs, at line 5"
    ],
    ["", "invalid_arguments", "old_text is empty; write_file writes a whole file"],
    ["x", "invalid_arguments", "old_text and new_text are the same"]
  ])("that cannot be says why: %j", async (old, errorCode, message) => {
    put(code)
    expect(await edit(old, "x")).toEqual({
      status: "error",
      error: { code: errorCode, message, retryable: false, source: "tool" }
    })
    expect(text()).toBe(code)
  })

  it("keeps line endings, byte order mark and what is not ASCII", async () => {
    put("\ufeffä\r\nb\r\nc\r\n")
    expect(await edit("ä\nb", "ö\nx\ny")).toMatchObject({ status: "success" })
    expect(text()).toBe("\ufeffö\r\nx\r\ny\r\nc\r\n")
  })

  it.each([
    ["no UTF-8", Buffer.from([0x61, 0xff, 0x62])],
    ["binary", Buffer.from("a\0b")]
  ])("of what is %s is refused", async (_name, bytes) => {
    put(bytes)
    expect(await edit("a", "c")).toMatchObject({ status: "error", error: { code: "not_text" } })
    expect(readFileSync(join(place.workspace, "a.ts"))).toEqual(bytes)
  })

  it("of what is too large or not there is refused", async () => {
    expect(await edit("a", "b")).toMatchObject({ error: { message: "a.ts: there is no such file" } })
    put("a".repeat(builtinLimits.editBytesMax + 1))
    expect(await edit("a", "b")).toMatchObject({ error: { code: "too_large" } })
  })

  it("of a file that somebody else changes meanwhile is refused", async () => {
    put(code)
    const workspace = await Effect.runPromise(door.open({ workspace: place.workspace }))
    const { expected } = await Effect.runPromise(requireTextFile(workspace, "a.ts"))
    const replacing = (was: Expected): Promise<unknown> =>
      Effect.runPromise(replaceFile(workspace, "a.ts", Buffer.from("lost"), was))
    put(`${code}// more\n`)
    await expect(replacing(expected)).rejects.toMatchObject({
      code: "file_changed"
    })
    await expect(replacing("missing")).rejects.toMatchObject({
      code: "file_changed"
    })
    expect(text()).toBe(`${code}// more\n`)
  })

  it("is shown as a difference before it is decided about", async () => {
    put(code)
    const input = { path: "a.ts", old_text: "one() {\n  return 1", new_text: "one() {\n  return 7" }
    expect(await previewOf(tool, input, { workspace: place.workspace })).toEqual({
      title: "edit a.ts",
      diff: "--- a/a.ts\n+++ b/a.ts\n@@ -1,5 +1,5 @@\n function one() {\n-  return 1\n+  return 7\n }\n \n function two() {\n"
    })
  })
})

describe("a diff", () => {
  it("is as short as it can be", () => {
    const before = "a\nb\nc\na\nb\nb\na\n"
    const after = "c\nb\na\nb\na\nc\n"
    const changed = unifiedDiff("x", { before, after })
      .split("\n")
      .filter((line) => /^[-+](?![-+])/.test(line))
    expect(changed).toHaveLength(5)
  })

  it("shows distant changes apart, near ones together", () => {
    const lines = Array.from({ length: 40 }, (_, index) => `${index}\n`)
    const changed = lines.map((line, index) => ([3, 8, 30].includes(index) ? `new ${line}` : line))
    const headers = unifiedDiff("x", { before: lines.join(""), after: changed.join("") })
      .split("\n")
      .filter((line) => line.startsWith("@@"))
    expect(headers).toEqual(["@@ -1,12 +1,12 @@", "@@ -28,7 +28,7 @@"])
  })

  it("is empty where there is no difference, and bounded where all differs", () => {
    expect(unifiedDiff("x", { before: "a\n", after: "a\n" })).toBe("")
    const many = (mark: string, length: number): string =>
      Array.from({ length }, (_, index) => `${mark}${index}\n`).join("")
    const diffOf = (length: number): string => unifiedDiff("x", { before: many("a", length), after: many("b", length) })
    expect(diffOf(15_000).startsWith("--- a/x\n+++ b/x\n@@ -1,15000 +1,15000 @@\n-a0\n")).toBe(true)
    expect(growth(diffOf, 15_000)).toBeLessThan(3)
  })
})
