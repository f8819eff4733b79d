// Goal: one answer to where the data lies, in the documented order. Method: environments of the test's own.
import { readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { describe, expect, it } from "vitest"
import { dataDirectory, readEnvironment, readVersion } from "#src/config/Environment.ts"

const homeDirectory = resolve("/home/ada")
const where = (variables: Readonly<Record<string, string>>, flag?: string) =>
  dataDirectory({ variables, homeDirectory }, flag)

describe("the data directory", () => {
  it("is the flag, then ECHS_DATA, then the state directory of the user", () => {
    const variables = { ECHS_DATA: "/data/echs", XDG_STATE_HOME: "/state" }
    expect(where(variables, "/flag")).toBe(resolve("/flag"))
    expect(where(variables)).toBe(resolve("/data/echs"))
    expect(where({ XDG_STATE_HOME: "/state" })).toBe(join("/state", "echs"))
    expect(where({})).toBe(join(homeDirectory, ".local", "state", "echs"))
  })

  it("takes an empty value for none and a relative one from the current directory", () => {
    expect(where({ ECHS_DATA: "", XDG_STATE_HOME: "" }, "")).toBe(join(homeDirectory, ".local", "state", "echs"))
    expect(where({ ECHS_DATA: "here" })).toBe(resolve("here"))
  })
})

describe("the real environment", () => {
  it("is that of the process", () => {
    expect(readEnvironment().variables).toBe(process.env)
  })

  it("knows the version of the package", () => {
    const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))
    expect(readVersion()).toBe(manifest.version)
  })
})
