// Goal: reading and listing give what is there, page by page, within bounds, and say where to go on. Method: real files of
// every awkward kind, blobs, and git itself as the judge of what is ignored.
import { execFileSync } from "node:child_process"
import { appendFileSync, mkdirSync, openSync, symlinkSync, writeFileSync, writeSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, it } from "vitest"
import { mediaLimits } from "#src/rune/Media.ts"
import { builtinLimits } from "#src/tool/builtin/BuiltinLimits.ts"
import { listFilesTool } from "#src/tool/builtin/files/List.ts"
import { readFileTool } from "#src/tool/builtin/files/Read.ts"
import { writeFileTool } from "#src/tool/builtin/files/Write.ts"
import { workspaceAccess } from "#src/tool/builtin/ToolSchema.ts"
import type { Input } from "#src/tool/Tool.ts"
import { count, reportCount } from "../support/counts.ts"
import { randomFrom, seedFor } from "../support/seed.ts"
import { previewOf, runTool } from "../support/tool/runTool.ts"
import { memoryBlobs, usePlace } from "../support/tool/ToolPlace.ts"

const place = usePlace()
const blobs = memoryBlobs()
const door = workspaceAccess({})
const read = (input: Input) => place.run(readFileTool({ door, blobs }), input)
const list = (input: Input = {}) => place.run(listFilesTool({ door }), input)
const write = (input: Input) => place.run(writeFileTool({ door }), input)
const put = (path: string, text: string | Buffer): void => {
  mkdirSync(dirname(join(place.workspace, path)), { recursive: true })
  writeFileSync(join(place.workspace, path), text)
}
const numbers = (count: number): string => Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join("")

/** Reads to the end, following what each page says. */
const readAll = async (path: string, limit?: number): Promise<string> => {
  let text = ""
  let next: Input | undefined = { path, ...(limit === undefined ? {} : { limit }) }
  for (let pages = 0; next !== undefined && pages < 1_000; pages += 1) {
    const { error, output = "" } = await read(next)
    if (error !== undefined) throw new Error(error.message)
    const marker =
      /(\n)?… up to (?:the middle of )?line \d+(?: of \d+)?; offset (\d+)(?:, column (\d+))? goes on …\n$/.exec(output)
    const isMiddle = marker?.[3] !== undefined
    text +=
      marker === null ? output : output.slice(0, isMiddle ? marker.index : marker.index + (marker[1]?.length ?? 0))
    const from = { offset: Number(marker?.[2]), ...(isMiddle ? { column: Number(marker?.[3]) } : {}) }
    next = marker === null ? undefined : { ...next, column: 1, ...from }
  }
  return text
}

describe("a file", () => {
  it.each([
    ["with text", "héllo\nwörld\n"],
    ["without a last newline", "one\ntwo"],
    ["that is empty", ""],
    ["of one newline", "\n"],
    ["with CR LF", "one\r\ntwo\r\n"],
    ["with a byte order mark", "\ufeffone\n"]
  ])("%s is read as it is", async (_name, text) => {
    put("a.txt", text)
    expect(await read({ path: "a.txt" })).toEqual({ status: "success", output: text })
  })

  it.each<readonly [Input, string]>([
    [{ offset: 3, limit: 2 }, "line 3\nline 4\n… up to line 4 of 6; offset 5 goes on …\n"],
    [{ offset: 5 }, "line 5\nline 6\n"],
    [{ offset: 5, limit: 2 }, "line 5\nline 6\n"],
    [{ limit: 1, line_numbers: true }, "     1\tline 1\n… up to line 1 of 6; offset 2 goes on …\n"],
    [{ offset: 6, line_numbers: true }, "     6\tline 6\n"],
    [{ offset: 6, column: 3 }, "ne 6\n"]
  ])("is read from a line on: %j", async (page, output) => {
    put("a.txt", numbers(6))
    expect(await read({ path: "a.txt", ...page })).toEqual({ status: "success", output })
  })

  it("that has fewer lines says how many", async () => {
    put("a.txt", numbers(6))
    expect(await read({ path: "a.txt", offset: 8 })).toMatchObject({
      status: "error",
      error: { code: "invalid_arguments", message: "offset 8 is after the end: there are 6 lines" }
    })
  })

  it.each([
    ["of many lines", numbers(9_000), undefined],
    ["of many lines, in small pages", numbers(200), 7],
    ["of one long line", `${"äöü€😀x".repeat(30_000)}end`, undefined],
    ["of long lines", `${"y".repeat(100_000)}\n`.repeat(3), undefined],
    ["whose pieces cut characters apart", "€".repeat(70_000), undefined]
  ])("%s is read whole page by page", async (_name, text, limit) => {
    put("a.txt", text)
    expect(await readAll("a.txt", limit)).toBe(text)
  })

  it("that is kept as a blob is read by its name", async () => {
    const ref = await blobs.keep(numbers(5_000))
    expect((await read({ path: `blob:${ref.sha256}`, offset: 4_999 })).output).toBe("line 4999\nline 5000\n")
    expect(await readAll(`blob:${ref.sha256}`)).toBe(numbers(5_000))
    expect(await read({ path: `blob:${"0".repeat(64)}` })).toMatchObject({ error: { code: "blob_unknown" } })
    expect(readFileTool({ door, blobs }).access({ path: `blob:${ref.sha256}` })).toEqual({})
  })

  it("that is huge takes the memory of a page", async () => {
    const file = openSync(join(place.workspace, "huge"), "w")
    writeSync(file, numbers(10_000))
    // 4 GiB that the disk does not hold.
    writeSync(file, "\nthe end\n", 4 * 1_024 ** 3)
    const before = process.memoryUsage().rss
    const { output } = await read({ path: "huge", limit: 3 })
    expect(output).toBe("line 1\nline 2\nline 3\n… up to line 3; offset 4 goes on …\n")
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1_024 ** 2)
  })

  it.each([
    ["a ZIP archive", Buffer.from("504b0304140000000000", "hex")],
    ["binary", Buffer.from([1, 2, 0, 3])]
  ])("that is no text is told as what it is: %s", async (kind, bytes) => {
    put("b", bytes)
    expect(await read({ path: "b" })).toMatchObject({
      status: "error",
      error: { code: "not_text", message: `b is ${kind}, ${bytes.length} bytes, and no text` }
    })
  })

  it.each([
    ["image/png", Buffer.from("89504e470d0a1a0a0000", "hex")],
    ["image/jpeg", Buffer.from("ffd8ffe000104a464946", "hex")],
    ["image/gif", Buffer.from("GIF89a-and-so-on", "latin1")],
    ["image/webp", Buffer.from("RIFF0000WEBPVP8 ", "latin1")],
    ["application/pdf", Buffer.from("%PDF-1.7 and so on", "latin1")]
  ])("that is %s is shown whole, whatever its name says", async (type, bytes) => {
    put("picture.txt", bytes)
    const outcome = await read({ path: "picture.txt" })
    expect(outcome).toMatchObject({ status: "success", output: `picture.txt: ${type}, ${bytes.length} bytes` })
    expect(outcome.media?.map((one) => Buffer.from(one.bytes))).toEqual([bytes])
  })

  it("that is an image too large to be shown says so", async () => {
    put("large.png", Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), Buffer.alloc(mediaLimits.imageBytesMax)]))
    expect((await read({ path: "large.png" })).error).toMatchObject({ code: "too_large" })
  })

  it("that is something else is an error and holds up nothing", async () => {
    execFileSync("mkfifo", [join(place.workspace, "pipe")])
    mkdirSync(join(place.workspace, "d"))
    expect((await read({ path: "pipe" })).error?.message).toBe("pipe is no regular file")
    expect((await read({ path: "d" })).error?.message).toBe("d is a directory; list_files shows what is in it")
    expect((await read({ path: "none" })).error?.message).toBe("none: there is no such file")
    expect((await read({ path: "none/deeper" })).error?.message).toBe("none/deeper: there is no such file")
    expect((await write({ path: "pipe", content: "x" })).error?.message).toBe("pipe is no regular file")
  })

  it("that is too large to write is refused", async () => {
    const content = "x".repeat(builtinLimits.writeBytesMax + 1)
    expect(await write({ path: "a", content })).toMatchObject({ error: { code: "too_large" } })
  })
})

describe("a listing", () => {
  it("has names in order, directories marked, links with where they lead", async () => {
    put("b.txt", "")
    put("a/x.txt", "")
    symlinkSync("b.txt", join(place.workspace, "link"))
    expect(await list()).toEqual({ status: "success", output: "a/\nb.txt\nlink -> b.txt" })
    expect((await list({ path: "a" })).output).toBe("x.txt")
    expect((await list({ recursive: true })).output).toBe("a/\na/x.txt\nb.txt\nlink -> b.txt")
    mkdirSync(join(place.workspace, "c"))
    expect((await list({ path: "c" })).output).toBe("(empty)")
    expect((await list({ path: "b.txt" })).error?.message).toBe("b.txt is no directory")
    expect((await list({ path: "none" })).error?.message).toBe("none: there is no such directory")
  })

  it("stops at its limits, and says so", async () => {
    for (let index = 0; index < 20; index += 1) put(`d/${String(index).padStart(2, "0")}`, "")
    put("d/e/f/g", "")
    expect((await list({ path: "d", limit: 2 })).output).toBe(
      "00\n01\n… more than 2 entries; name a directory to see less …"
    )
    expect((await list({ path: "d", depth: 2, limit: 100 })).output?.split("\n").slice(-2)).toEqual(["e/", "e/f/"])
  })

  it("leaves out what git leaves out", async () => {
    const rules = [
      "# a comment",
      "*.log",
      "!keep.log",
      "/top.txt",
      "build/",
      "docs/*.html",
      "**/cache",
      "a/**/z",
      "x?y",
      "[ab].tmp",
      "[!a-c].dat",
      "trailing.txt   ",
      "\\#file",
      "deep/**",
      "!deep/never-back"
    ]
    put(".gitignore", `${rules.join("\n")}\n`)
    put("sub/.gitignore", "own.txt\n!sub.log\n/anchored\n")
    const files = [
      ...["a.log", "keep.log", "top.txt", "sub/top.txt", "build/x", "sub/build/y", "builds/x", "docs/a.html"],
      ...["docs/b/c.html", "docs/a.txt", "cache", "sub/cache/q", "a/z", "a/b/z", "a/b/c/z", "a/b/c/zz", "xay", "xy"],
      ...["a.tmp", "c.tmp", "d.dat", "a.dat", "trailing.txt", "#file", "deep/x", "deep/never-back", "sub/own.txt"],
      ...["sub/sub.log", "sub/other.log", "sub/anchored", "sub/deeper/anchored", "own.txt", "sub/deeper/own.txt"]
    ]
    for (const file of files) put(file, "")
    const git = (...args: ReadonlyArray<string>): string =>
      execFileSync("git", args, { cwd: place.workspace, encoding: "utf8" })
    git("init", "--quiet")
    appendFileSync(join(place.workspace, ".git", "info", "exclude"), "\nbuilds\n")
    const kept = git("ls-files", "--others", "--exclude-standard").trim().split("\n").sort()
    const { output = "" } = await list({ recursive: true })
    const listed = output.split("\n").filter((line) => !line.endsWith("/") && !line.startsWith("("))
    expect(listed.sort()).toEqual(kept)
    expect(kept.length).toBeLessThan(files.length)
    expect(output).toMatch(/\(\d+ ignored not shown; include_ignored shows them\)$/)
    const all = (await list({ recursive: true, include_ignored: true })).output?.split("\n") ?? []
    expect(all.filter((line) => !line.endsWith("/"))).toHaveLength(files.length + 2)
    // From inside, the rules of what is above hold too.
    const below = (await list({ path: "sub", recursive: true })).output?.split("\n") ?? []
    expect(below.filter((line) => !line.endsWith("/") && !line.startsWith("(")).sort()).toEqual(
      kept.filter((file) => file.startsWith("sub/")).map((file) => file.slice(4))
    )
  })

  it("agrees with git about rules and trees of all kinds", async () => {
    const rounds = count("ignore rules compared with git", { fast: 40, soak: 2_000 })
    const random = randomFrom(seedFor("ignore rules"))
    const below = (limit: number): number => Math.floor(random() * limit)
    const oneOf = <T>(choices: ReadonlyArray<T>): T => choices[below(choices.length)]!
    const names = ["a", "b", "ab", "ba", "c", "a.b"]
    const pieces = ["a", "b", "ab", "*", "**", "a*", "*b", "?", "[ab]", "[!a]", "a?", "**a", "*.*", "a.b"]
    const someRule = (): string => {
      const segments = Array.from({ length: 1 + below(3) }, () => oneOf(pieces)).join("/")
      return `${oneOf(["", "", "", "!"])}${oneOf(["", "", "/"])}${segments}${oneOf(["", "", "/"])}`
    }
    for (let round = 0; round < rounds; round += 1) {
      const root = join(place.workspace, String(round))
      for (let file = 0; file < 25; file += 1) {
        const path = join(root, ...Array.from({ length: 1 + below(4) }, () => oneOf(names)))
        try {
          mkdirSync(dirname(path), { recursive: true })
          writeFileSync(path, "", { flag: "wx" })
        } catch {
          // A file where a directory is wanted, or the other way round: one of them is enough.
        }
      }
      const rules = Array.from({ length: 1 + below(4) }, someRule)
      writeFileSync(join(root, ".gitignore"), `${rules.join("\n")}\n`)
      execFileSync("git", ["init", "--quiet"], { cwd: root })
      const kept = execFileSync("git", ["ls-files", "-z", "--others", "--exclude-standard"], {
        cwd: root,
        encoding: "utf8"
      })
      const context = { ...place.context(), workspace: root }
      const { output = "" } = await runTool(listFilesTool({ door }), { recursive: true }, context)
      const listed = output.split("\n").filter((line) => !line.endsWith("/") && !line.startsWith("("))
      expect(listed.sort(), rules.join("\n")).toEqual(kept.split("\0").slice(0, -1).sort())
    }
    reportCount("ignore rules that git agrees with", rounds)
  })

  it("comes to an end, whatever the pattern", async () => {
    put(".gitignore", `${"*a".repeat(200)}b\n${"**/".repeat(60)}x\n`)
    put("a".repeat(200), "")
    // Tried in every way they can be read, these would take until the end of the test, and longer.
    expect((await list({ recursive: true })).status).toBe("success")
  })
})

describe("a question about a write", () => {
  it("shows the difference to what is there", async () => {
    const preview = (content: string) =>
      previewOf(writeFileTool({ door }), { path: "sub/a.txt", content }, { workspace: place.workspace })
    expect(await preview("one\n")).toEqual({
      title: "write a new file sub/a.txt",
      diff: "--- /dev/null\n+++ b/sub/a.txt\n@@ -0,0 +1 @@\n+one\n"
    })
    put("sub/a.txt", "one\n")
    expect(await preview("two")).toEqual({
      title: "write sub/a.txt",
      diff: "--- a/sub/a.txt\n+++ b/sub/a.txt\n@@ -1 +1 @@\n-one\n+two\n\\ No newline at end of file\n"
    })
    expect(await preview("one\n")).toEqual({ title: "write sub/a.txt", detail: "it has this content already" })
  })
})

it("the policy is told when a list goes below its directory", () => {
  const { access } = listFilesTool({ door })
  expect(access({ path: "src" })).toEqual({ reads: ["src"] })
  expect(access({ recursive: true })).toEqual({ reads: ["."], below: true })
  expect(access({ depth: 2 })).toEqual({ reads: ["."], below: true })
})
