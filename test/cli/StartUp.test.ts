// Goal: a verb loads what it needs and no more, so that the command starts fast. Method: the real command under a hook
// that writes down every module it loads.
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { launcher } from "../support/cli.ts"

const data = mkdtempSync(join(tmpdir(), "echs-startup-"))
afterAll(() => rmSync(data, { recursive: true, force: true }))

const listing = `
import { registerHooks } from "node:module"
import { writeSync } from "node:fs"
registerHooks({ load: (url, context, next) => { writeSync(2, "loads " + url + "\\n"); return next(url, context) } })
`

/** Paths of the modules that were loaded, from the top of the project or of node_modules. */
const loadedBy = (...args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const run = spawnSync(
    process.execPath,
    ["--import", `data:text/javascript,${encodeURIComponent(listing)}`, launcher, ...args],
    { encoding: "utf8", env: { ...process.env, ECHS_DATA: data } }
  )
  return [...run.stderr.matchAll(/^loads file:\/\/(.*)$/gm)].map(([, path = ""]) =>
    path.replace(/^.*\/(node_modules|src|runelog)\//, "$1/")
  )
}

describe("the command loads", () => {
  it("for --help the names of the verbs and none of them", () => {
    const loaded = loadedBy("--help")
    expect(loaded).toContain("src/main/Verbs.ts")
    expect(
      loaded.filter((path) =>
        /^(node_modules|runelog)\/|^src\/(cli\/verbs|client|server|provider|machine)\//.test(path)
      )
    ).toEqual([])
  })

  it.each([[["ls"]], [["tail", "last"]], [["show", "last"]], [["approve", "last"]], [["export", "last"]]])(
    "for %j the client, and neither engine, nor schemas, nor a provider",
    (args) => {
      const loaded = loadedBy(...args)
      expect(loaded).toContain("src/client/Client.ts")
      expect(
        loaded.filter((path) =>
          /^(node_modules|runelog)\/|^src\/(server|provider|machine|rune|store|conversation|tool)\//.test(path)
        )
      ).toEqual([])
    }
  )

  it("as a library no more than the client and the codes of the protocol, so that a browser can", () => {
    const source = new URL("../../src/client/Client.ts", import.meta.url).href
    const run = spawnSync(
      process.execPath,
      [
        "--import",
        `data:text/javascript,${encodeURIComponent(listing)}`,
        "--input-type=module",
        "-e",
        `await import(${JSON.stringify(source)})`
      ],
      { encoding: "utf8" }
    )
    expect(run.status, run.stderr).toBe(0)
    const loaded = [...run.stderr.matchAll(/^loads (?:file|node):(.*)$/gm)].map(([, path = ""]) =>
      path.replace(/^.*\/src\//, "src/")
    )
    expect(loaded).toContain("src/client/Client.ts")
    expect(loaded.filter((path) => !/^src\/(client\/\w+|wire\/Codes)\.ts$/.test(path))).toEqual([])
  })

  it("for serve no provider before a conversation needs it", () => {
    const loaded = loadedBy("serve", "--port", "70000")
    expect(loaded).toContain("src/main/ServeVerb.ts")
    expect(loaded.filter((path) => /^node_modules\/(openai|@anthropic-ai)\//.test(path))).toEqual([])
  })
})
