// Goal: instruction files are found from the repository's root down to the workspace and in folders the agent touched, with
// their imports; and nothing outside of the workspace, its repository or the user's folder is ever read by their means,
// whatever links, paths and planted repositories say. Method: real directories; every secret is a word that must not occur.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type FilesWanted, findFiles } from "#src/prompt/Files.ts"
import { importsIn } from "#src/prompt/Imports.ts"
import { limits } from "#src/prompt/PromptLimits.ts"

let place = ""
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "echs-prompt-"))
})
afterEach(() => rmSync(place, { recursive: true, force: true }))

const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(place, path)), { recursive: true })
  writeFileSync(join(place, path), text)
}

const find = (wanted: Partial<FilesWanted> = {}) =>
  findFiles({
    workspace: join(place, "mono/pkg"),
    project: true,
    userFile: undefined,
    touched: [],
    known: [],
    mayRead: () => true,
    ownDirectories: [join(place, "data")],
    ...wanted
  })

const namesOf = async (wanted: Partial<FilesWanted> = {}): Promise<ReadonlyArray<string>> =>
  (await find(wanted)).files.map(({ name }) => name.replace(`${place}/`, ""))

const textOf = async (wanted: Partial<FilesWanted> = {}): Promise<string> =>
  (await find(wanted)).files.map(({ text }) => text).join("\n")

describe("the files that hold", () => {
  it("are the user's, those from the repository's root down, and those of touched folders, in this order", async () => {
    mkdirSync(join(place, "mono/.git"), { recursive: true })
    for (const path of ["home/AGENTS.md", "AGENTS.md", "mono/AGENTS.md", "mono/CLAUDE.md", "mono/pkg/CLAUDE.md"])
      write(path, path)
    for (const path of ["a/AGENTS.md", "a/b/CLAUDE.md", "a/b/c/AGENTS.md", "z/AGENTS.md"])
      write(`mono/pkg/${path}`, path)
    const userFile = join(place, "home/AGENTS.md")
    const general = ["home/AGENTS.md", "mono/AGENTS.md", "mono/CLAUDE.md", "CLAUDE.md"]
    expect(await namesOf({ userFile })).toEqual(general)
    const touched = ["a/b/file.ts", "../elsewhere/x", "/etc/passwd", "nowhere/else"]
    expect(await namesOf({ userFile, touched })).toEqual([...general, "a/AGENTS.md", "a/b/CLAUDE.md"])
    expect(await namesOf({ userFile, touched: [join(place, "mono/pkg/z")] })).toEqual([...general, "z/AGENTS.md"])
    expect(await namesOf({ known: ["a/AGENTS.md"] })).toContain("a/AGENTS.md")
    expect(await namesOf({ userFile, touched, project: false })).toEqual(["home/AGENTS.md"])
  })

  it("stop at the workspace without a repository above, and at folders of strangers or for everybody", async () => {
    write("mono/AGENTS.md", "above")
    write("mono/pkg/AGENTS.md", "own")
    expect(await namesOf()).toEqual(["AGENTS.md"])
    mkdirSync(join(place, "mono/.git"))
    expect(await namesOf()).toEqual(["mono/AGENTS.md", "AGENTS.md"])
    chmodSync(join(place, "mono"), 0o777)
    expect(await namesOf()).toEqual(["AGENTS.md"])
  })

  it("are as many folders as are allowed, and files are read as far as is allowed", async () => {
    const touched = Array.from({ length: limits.directoriesTouchedMax + 20 }, (_, at) => `d${at}/file`)
    for (const path of touched) write(`mono/pkg/${dirname(path)}/AGENTS.md`, path)
    expect((await namesOf({ touched })).length).toBeLessThanOrEqual(limits.directoriesTouchedMax)
    write("mono/pkg/AGENTS.md", `begin${"x".repeat(limits.fileBytesMax)}end-of-file`)
    const text = await textOf()
    expect(text).toContain("begin")
    expect(text).toContain("more bytes were not read")
    expect(text).not.toContain("end-of-file")
  })
})

describe("imports", () => {
  it("are words outside of code", () => {
    const text = "See @a.md, (@b.md) and @c/d.md.\n`@e.md` mail@f.md\n```\n@g.md\n```\n@h.md @a.md"
    expect(importsIn(text)).toEqual(["a.md", "c/d.md", "h.md"])
  })

  it("bring along what they name, each once, to a depth, in any order of links", async () => {
    mkdirSync(join(place, "mono/.git"), { recursive: true })
    write("mono/AGENTS.md", "top @shared/rules.md")
    write("mono/shared/rules.md", "shared-rules @more.md @rules.md")
    write("mono/shared/more.md", "more-rules")
    write("mono/pkg/AGENTS.md", "own @1.md")
    symlinkSync("AGENTS.md", join(place, "mono/pkg/CLAUDE.md"))
    for (let at = 1; at < 9; at += 1) write(`mono/pkg/${at}.md`, `level-${at} @${at + 1}.md @AGENTS.md`)
    const text = await textOf()
    for (const word of ["top", "shared-rules", "more-rules", "own", "level-1", `level-${limits.importDepthMax}`])
      expect(text.split(word)).toHaveLength(2)
    expect(text).not.toContain(`level-${limits.importDepthMax + 1}`)
    expect(text).toContain("too deep")
    expect(await namesOf()).toEqual(["mono/AGENTS.md", "AGENTS.md"])
  })

  it("lead out of the workspace by no path and no link, nor out of the repository or the user's folder", async () => {
    mkdirSync(join(place, "mono/.git"), { recursive: true })
    write("secret.md", "SECRET-outside")
    write("mono/outer.md", "SECRET-outer")
    write("data/token", "SECRET-token")
    write("home/AGENTS.md", `@../secret.md @${join(place, "secret.md")} @~/secret.md`)
    write("mono/AGENTS.md", `@../secret.md @${join(place, "secret.md")} @link.md`)
    const out = [
      "../outer.md",
      "pkg/../../outer.md",
      join(place, "mono/outer.md"),
      "link.md",
      "dir/outer.md",
      "/etc/passwd"
    ]
    write("mono/pkg/AGENTS.md", out.map((path) => `@${path}`).join("\n"))
    symlinkSync("../secret.md", join(place, "mono/link.md"))
    symlinkSync("../outer.md", join(place, "mono/pkg/link.md"))
    symlinkSync("..", join(place, "mono/pkg/dir"))
    symlinkSync(join(place, "secret.md"), join(place, "mono/pkg/CLAUDE.md"))
    const text = await textOf({ userFile: join(place, "home/AGENTS.md") })
    expect(text).not.toContain("SECRET")
    expect(text).not.toContain("root:")
    expect(text).toContain("[@../outer.md is not imported: it lies outside]")
    // What ECHS keeps is for nobody, also where it lies in the workspace.
    write("mono/pkg/AGENTS.md", "@data/token")
    write("mono/pkg/data/token", "SECRET-token")
    expect(await textOf({ ownDirectories: [join(place, "mono/pkg/data")] })).not.toContain("SECRET")
  })

  it("open nothing that the policy would ask about or deny", async () => {
    write("mono/pkg/AGENTS.md", "own @keys/a.md @fine.md")
    write("mono/pkg/keys/a.md", "SECRET-key")
    write("mono/pkg/fine.md", "fine-rules")
    symlinkSync("keys/a.md", join(place, "mono/pkg/CLAUDE.md"))
    const text = await textOf({ mayRead: (path) => !path.startsWith("keys/") })
    expect(text).toContain("fine-rules")
    expect(text).not.toContain("SECRET")
    mkdirSync(join(place, "mono/.git"), { recursive: true })
    write("mono/AGENTS.md", "@pkg/keys/a.md")
    expect(await textOf({ mayRead: (path) => !path.startsWith("keys/") })).not.toContain("SECRET")
  })

  it("are no pipes, no folders and no bytes", async () => {
    write("mono/pkg/AGENTS.md", "own @bytes.bin @folder/x @folder")
    write("mono/pkg/bytes.bin", "SECRET\0bytes")
    mkdirSync(join(place, "mono/pkg/folder"))
    mkdirSync(join(place, "mono/pkg/CLAUDE.md"))
    const text = await textOf()
    expect(text).toContain("[@bytes.bin is not imported: it is no text]")
    expect(text).not.toContain("SECRET")
  })
})
