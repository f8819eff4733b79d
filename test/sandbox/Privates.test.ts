// Goal: what is not for everybody is hidden from commands however much of it there is: a limit hides more, never less.
// Method: directories on the real disk, small limits.
// Verifies: INV-SECRET-PRIVACY
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { Privates } from "#src/sandbox/Privates.ts"
import { count, reportCount } from "../support/counts.ts"
import { randomFrom, seedFor } from "../support/seed.ts"

let place = ""
beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), "echs-privates-")))
  chmodSync(place, 0o755)
})
afterEach(() => rmSync(place, { recursive: true, force: true }))

const reader = { uid: process.getuid?.() ?? 0, gids: [] }

const put = (path: string, mode = 0o644): string => {
  const at = join(place, path)
  mkdirSync(dirname(at), { recursive: true, mode: 0o755 })
  writeFileSync(at, "x")
  chmodSync(at, mode)
  return at
}

const hiddenIn = async (limits: { readonly searchedMax: number; readonly privatesMax: number }) => {
  const privates = new Privates([place], limits)
  await privates.refresh()
  return privates.hiddenFrom(reader)
}

const covers = (hidden: ReadonlyArray<{ readonly at: string }>, path: string): boolean =>
  hidden.some(({ at }) => path === at || path.startsWith(`${at}/`))

describe("files that are not for everybody", () => {
  it("are hidden one by one, and nothing else is", async () => {
    const secret = put("etc/key", 0o600)
    put("etc/motd")
    expect((await hiddenIn({ searchedMax: 100, privatesMax: 10 })).map(({ at, kind }) => [at, kind])).toEqual([
      [secret, "blank"]
    ])
  })

  it("are hidden with the directories around them when they are too many", async () => {
    const secrets = Array.from({ length: 12 }, (_, index) => put(`opt/${index % 3}/deep/key${index}`, 0o600))
    const open = put("etc/motd")
    const hidden = await hiddenIn({ searchedMax: 100, privatesMax: 4 })
    expect(hidden.length).toBeLessThanOrEqual(4)
    expect(secrets.filter((path) => !covers(hidden, path))).toEqual([])
    expect(covers(hidden, open)).toBe(false)
    for (const { kind } of hidden) expect(kind).toBe("empty")
  })

  it("lie in no directory that was not looked into and is shown", async () => {
    for (let index = 0; index < 30; index++) put(`a/${index}`)
    const unseen = put("b/c/d/key", 0o600)
    const hidden = await hiddenIn({ searchedMax: 10, privatesMax: 10 })
    expect(covers(hidden, unseen)).toBe(true)
  })

  it("are hidden under any limits, whatever the tree", async () => {
    const random = randomFrom(seedFor("private files"))
    const trees = count("trees of private files", { fast: 40, soak: 2_000 })
    let secrets = 0
    for (let tree = 0; tree < trees; tree++) {
      const made = Array.from({ length: 20 }, (_, index) => {
        const depth = 1 + Math.floor(random() * 4)
        const path = Array.from({ length: depth }, () => String(Math.floor(random() * 3))).join("/d")
        return put(`t${tree}/d${path}/f${index}`, random() < 0.5 ? 0o600 : 0o644)
      })
      const limits = { searchedMax: 1 + Math.floor(random() * 60), privatesMax: 1 + Math.floor(random() * 8) }
      const privates = new Privates([join(place, `t${tree}`)], limits)
      await privates.refresh()
      const hidden = privates.hiddenFrom(reader)
      const everything = new Privates([join(place, `t${tree}`)], { searchedMax: 10_000, privatesMax: 10_000 })
      await everything.refresh()
      const all = everything.hiddenFrom(reader).map(({ at }) => at)
      secrets += all.length
      expect(all.filter((path) => !covers(hidden, path))).toEqual([])
      expect(hidden.length).toBeLessThanOrEqual(limits.privatesMax)
      expect(made.length).toBe(20)
    }
    expect(secrets).toBeGreaterThan(trees)
    reportCount("private files hidden under small limits", secrets)
  })
})
