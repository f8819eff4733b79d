// Goal: every version of the format that was ever released can still be read, and today's writer still writes it
// (experiment 13). Method: recorded directories under runelog/testdata with what they must hold; the scripts that made
// them, run again and compared byte for byte.
// Verifies: INV-RUNE-IMMUTABLE
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "vitest"
import { Runelog } from "#runelog/Runelog.ts"
import { verify } from "#runelog/verify/Verify.ts"
import { directory, diskOf, type Snapshot } from "./Fixture.ts"
import { contentOfDirectory, type Expected, filesOf, scenarios } from "./GoldenScenarios.ts"

const testdata = fileURLToPath(new URL("../../runelog/testdata/", import.meta.url))

/** What is written today: version 1 with a manifest. */
const current = "v1.1"

const filesBelow = (place: string): ReadonlyArray<string> =>
  readdirSync(place).flatMap((name) =>
    statSync(join(place, name)).isDirectory() ? filesBelow(join(place, name)) : [join(place, name)]
  )

const recorded = (version: string, name: string): Snapshot => {
  const place = join(testdata, version, name)
  return new Map(filesBelow(place).map((path) => [directory + path.slice(place.length), readFileSync(path)]))
}

const expectedOf = (version: string, name: string): Expected =>
  JSON.parse(readFileSync(join(testdata, version, `${name}.json`), "utf8"))

const all = readdirSync(testdata).flatMap((version) =>
  readdirSync(join(testdata, version))
    .filter((name) => !name.endsWith(".json"))
    .map((name) => ({ version, name }))
)

describe("a recorded directory", () => {
  const temporary = mkdtempSync(join(tmpdir(), "echs-golden-"))
  afterAll(() => rmSync(temporary, { recursive: true, force: true }))

  it("is there for every script", () => {
    for (const wanted of ["v1", current]) {
      expect(all.filter(({ version }) => version === wanted).map(({ name }) => name)).toEqual(
        Object.keys(scenarios).sort()
      )
    }
  })

  it.each(all)("$version/$name holds every frame that was recorded", async ({ name, version }) => {
    expect(await contentOfDirectory(await diskOf(recorded(version, name)))).toEqual(expectedOf(version, name))
  })

  it.each(all)("$version/$name is sound", async ({ name, version }) => {
    expect((await verify({ directory, disk: await diskOf(recorded(version, name)) })).problems).toEqual([])
  })

  it.each(all)("$version/$name opens on the real disk and is sound when it is closed", async ({ name, version }) => {
    const place = join(temporary, version, name)
    cpSync(join(testdata, version, name), place, { recursive: true })
    const runelog = await Runelog.open({ directory: place })
    const { logs } = expectedOf(version, name)
    for (const [log, frames] of Object.entries(logs)) expect(await runelog.head(log)).toBe(frames.at(-1)!.last_event_id)
    await runelog.close()
    expect(await verify({ directory: place })).toMatchObject({
      problems: [],
      logs: Object.keys(logs).length,
      batches: 0
    })
  })
})

describe("today's writer", () => {
  /** When the journal is checkpointed, and so what is left in it after a close, is no part of the format. */
  const isCompared = (name: string, path: string): boolean => name === "unclean" || /\.(seg|idx)$/.test(path)

  it.each(Object.keys(scenarios))("writes %s byte for byte as it was recorded", async (name) => {
    const before = recorded(current, name)
    const now = await filesOf(name)
    const compared = (files: Snapshot) => [...files.keys()].filter((path) => isCompared(name, path)).sort()
    expect(compared(now)).toEqual(compared(before))
    for (const path of compared(now)) {
      const [left, right] = [Buffer.from(now.get(path)!), Buffer.from(before.get(path)!)]
      const at = left.findIndex((byte, index) => byte !== right[index])
      expect({ path, bytes: left.length, differsAt: at }).toEqual({ path, bytes: right.length, differsAt: -1 })
    }
  })
})
