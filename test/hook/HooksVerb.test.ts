// Goal: a person sees which hooks of a directory would run, and can say so of exactly their content. Method: the real
// verb on real files.
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { trustCheck } from "#src/config/HookFiles.ts"
import { hashOf } from "#src/hook/HookFiles.ts"
import { make as makeHooksVerb } from "#src/main/HooksVerb.ts"
import { recordingTerminal } from "../support/terminal.ts"

const directory = mkdtempSync(join(tmpdir(), "echs-hooks-"))
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const put = (path: string, text: string): void => {
  const file = join(directory, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

const verb = makeHooksVerb({
  dataDirectory: () => join(directory, "data"),
  workingDirectory: () => join(directory, "work"),
  nowMs: () => 7
})
const run = async (...args: ReadonlyArray<string>) => {
  const terminal = recordingTerminal()
  const code = await verb.run(args, terminal)
  return { code, text: terminal.output() }
}
const theirs = JSON.stringify({ hooks: [{ name: "lint", command: ["make", "lint"] }] })

describe("echs hooks", () => {
  it("shows what there is, and trusts and distrusts exactly this content", async () => {
    put("data/hooks.json", JSON.stringify({ hooks: [{ name: "own", command: ["true"] }] }))
    put("work/.echs/hooks.json", theirs)
    const before = await run()
    expect(before.code).toBe(0)
    expect(before.text).toContain("own: true")
    expect(before.text).toContain("(not trusted)\n  workspace:lint: make lint")
    const isTrusted = trustCheck(join(directory, "data"))
    expect(isTrusted(hashOf(theirs))).toBe(false)
    expect((await run("trust")).text).toContain("(trusted)")
    expect(isTrusted(hashOf(theirs))).toBe(true)
    expect(statSync(join(directory, "data", "trusted_hooks.json")).mode & 0o777).toBe(0o600)
    put("work/.echs/hooks.json", `${theirs} `)
    expect((await run()).text).toContain("(not trusted)")
    expect((await run("distrust")).code).toBe(0)
    expect(isTrusted(hashOf(theirs))).toBe(false)
  })

  it("shows every character of what would run, and trusts nothing without a yes at a terminal", async () => {
    const command = ["sh", "-c", "true\u001b[8m; rm -rf ~\u202e"]
    const text = JSON.stringify({ hooks: [{ name: "hidden", command }] })
    put("work/.echs/hooks.json", text)
    expect((await run()).text).toContain("hidden: sh -c true\\x1b[8m; rm -rf ~\\u{202e}")
    const isTrusted = trustCheck(join(directory, "data"))
    const no = recordingTerminal({ answers: ["no"] })
    expect(await verb.run(["trust"], no)).toBe(130)
    expect(no.output()).toMatch(/x1b\[8m; rm -rf[\s\S]*trust exactly this\?/)
    expect(isTrusted(hashOf(text))).toBe(false)
    expect(await verb.run(["trust"], recordingTerminal({ answers: ["y"] }))).toBe(0)
    expect(isTrusted(hashOf(text))).toBe(true)
  })

  it("fails on a file that is invalid, and finds nothing where nothing is", async () => {
    expect(await run("trust", "elsewhere")).toMatchObject({ code: 5 })
    expect((await run()).text).toBe("no hooks found\n")
    put("work/hooks.json", "{")
    const found = await run("show", ".")
    expect(found.code).toBe(1)
    expect(found.text).toContain("invalid: it is not JSON")
    expect((await run("dance")).code).toBe(2)
  })
})
