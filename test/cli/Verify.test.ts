// Goal: `echs verify` says what the engine found, in words and in JSON, with an exit code to match. Method: reports of
// the test's own for the words; the real command over a real log, sound and then damaged, for the rest.
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { Runelog } from "#runelog/Runelog.ts"
import { make as makeVerify, type VerifyReport } from "#src/cli/verbs/verify.ts"
import { RuneStore } from "#src/store/runes/RuneStore.ts"
import { conversationIdOf, Scribe } from "../store/support.ts"
import { recordingTerminal } from "../support/terminal.ts"

const sound: VerifyReport = {
  logs: 2,
  segments: 3,
  sealed: 1,
  entries: 1_234,
  batches: 0,
  bytes: 56_789,
  archives: 0,
  blobs: 0,
  problems: [],
  notes: []
}
const damaged: VerifyReport = {
  ...sound,
  problems: [{ file: "runelog/conv_1/0001.seg", offset: 4_096, reason: "checksum" }]
}

const unused = (): Promise<never> => Promise.reject(new Error("not asked for"))
const remote = {
  version: "0",
  endpoint: unused,
  workingDirectory: () => "/here",
  readFile: unused,
  startServer: unused,
  hasCrashed: unused,
  repeatProof: unused
}

const verify = async (report: VerifyReport | "missing", ...args: ReadonlyArray<string>) => {
  const terminal = recordingTerminal()
  const verb = makeVerify({ ...remote, dataDirectory: (flag) => flag ?? "/default", verify: async () => report })
  return { code: await verb.run(args, terminal), output: terminal.output(), complaints: terminal.complaints() }
}

describe("echs verify --from", () => {
  const check = (outcome: "passed" | "failed" | "not_repeated") => ({ check: `it ${outcome}`, outcome, detail: "why" })
  const repeat = async (checks: ReadonlyArray<ReturnType<typeof check>> | undefined, text = '{"kind":"x"}\n') => {
    const terminal = recordingTerminal()
    const proof = { plan_id: "plan_1", goal: "Mend it", workspace: "/w", tree: "abc" }
    const verb = makeVerify({
      ...remote,
      dataDirectory: () => "",
      verify: unused,
      readFile: async () => Buffer.from(text),
      repeatProof: async () => (checks === undefined ? undefined : { ...proof, checks })
    })
    return { code: await verb.run(["--from", "runes.jsonl"], terminal), output: terminal.output() }
  }

  it.each([
    [0, [check("passed")]],
    [1, [check("passed"), check("failed"), check("not_repeated")]],
    [5, undefined],
    [6, [check("passed"), check("not_repeated")]],
    [6, []]
  ] as const)("ends with %i by what came of the checks", async (code, checks) => {
    expect((await repeat(checks)).code).toBe(code)
  })

  it("names each check, why it did not pass, and the tree", async () => {
    const { output } = await repeat([check("passed"), check("not_repeated")])
    expect(output).toBe(
      "plan_1: Mend it\n✓ it passed\n? it not_repeated: why\n1 of 2 checks passed again on abc, in /w\n"
    )
  })

  it("refuses what is no export", async () => {
    expect((await repeat([], "nonsense")).code).toBe(2)
  })
})

describe("echs verify", () => {
  it("calls a sound directory sound", async () => {
    expect(await verify(sound)).toEqual({
      code: 0,
      output: "sound: 1,234 entries in 2 logs, at /default\n",
      complaints: ""
    })
  })

  it("names file, offset and reason of every fault", async () => {
    const { code, output } = await verify(damaged, "--data", "/data")
    expect(code).toBe(1)
    expect(output).toBe(
      "damaged runelog/conv_1/0001.seg at byte 4096: checksum\n1 problem: 1,234 entries in 2 logs, at /data\n"
    )
  })

  it("tells what waits in the journal and what is good to know", async () => {
    const notes = [{ file: "meta.tmp", text: "an unfinished file" }]
    const { code, output } = await verify({ ...sound, logs: 1, entries: 1, batches: 1, notes })
    expect(code).toBe(0)
    expect(output).toBe(
      "note meta.tmp: an unfinished file\nsound: 1 entry in 1 log, 1 batch in the journal, at /default\n"
    )
  })

  it("prints one JSON object with --json", async () => {
    const { code, output } = await verify(damaged, "--json")
    expect(code).toBe(1)
    expect(JSON.parse(output)).toEqual({ directory: "/default", ...damaged })
  })

  it("answers 5 when there is nothing to read", async () => {
    expect(await verify("missing")).toEqual({
      code: 5,
      output: "",
      complaints: "echs verify: no data at /default\n"
    })
  })

  it.each([["--fast"], ["somewhere"]])("refuses %s with exit code 2", async (argument) => {
    expect(await verify(sound, argument)).toMatchObject({ code: 2, output: "" })
  })
})

describe("the command over a real log", () => {
  const launcher = fileURLToPath(new URL("../../src/cli/echs.js", import.meta.url))
  const echs = (verb: string, directory: string, ...args: ReadonlyArray<string>) =>
    spawnSync(process.execPath, [launcher, verb, "--data", directory, ...args], { encoding: "utf8" })
  let directory: string

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "echs-verify-"))
    const runelog = await Runelog.open({ directory })
    const store = new RuneStore({ runelog })
    for (const number of [1, 2]) {
      const { conversationId, runes } = new Scribe(number).begin().turn()
      for (const rune of runes) await store.appendNow(conversationId, [rune])
    }
    await runelog.close()
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  const folderOf = (number: number): string => join(directory, "runelog", conversationIdOf(number))
  const segmentOf = (number: number): string =>
    join(folderOf(number), readdirSync(folderOf(number)).find((name) => name.endsWith(".seg")) ?? "")

  it("tells a sound log from one with a single wrong bit, and changes neither", () => {
    const entries = 2 * new Scribe(1).begin().turn().runes.length
    expect(echs("verify", directory)).toMatchObject({
      status: 0,
      stderr: "",
      stdout: `sound: ${entries} entries in 2 logs, at ${directory}\n`
    })
    const segment = segmentOf(1)
    const bytes = readFileSync(segment)
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
    writeFileSync(segment, bytes)
    const run = echs("verify", directory, "--json")
    expect(run).toMatchObject({ status: 1, stderr: "" })
    expect(JSON.parse(run.stdout).problems).toMatchObject([{ file: segment, log: conversationIdOf(1) }])
    expect(readFileSync(segment)).toEqual(bytes)
  })

  it("misses a conversation whose directory is gone, says what a repair would do, and does it when told to", () => {
    rmSync(folderOf(1), { recursive: true })
    const segment = segmentOf(2)
    const bytes = readFileSync(segment)
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
    writeFileSync(segment, bytes)
    const problems = JSON.parse(echs("verify", directory, "--json").stdout).problems
    expect(problems).toContainEqual({
      file: folderOf(1),
      log: conversationIdOf(1),
      offset: 0,
      reason: "the log is missing, the manifest knows of it"
    })
    const plan = echs("repair", directory)
    expect(plan).toMatchObject({ status: 1, stderr: "" })
    expect(plan.stdout).toContain(`would truncate log ${conversationIdOf(2)}`)
    expect(readFileSync(segment)).toEqual(bytes)
    const done = echs("repair", directory, "--yes")
    expect(done).toMatchObject({ status: 0, stderr: "" })
    expect(done.stdout).toContain(`truncated log ${conversationIdOf(2)} after event`)
    const [copy] = readdirSync(join(directory, "quarantine"))
    expect(bytes.subarray(-100).equals(readFileSync(join(directory, "quarantine", copy!)).subarray(-100))).toBe(true)
    expect(echs("verify", directory).status).toBe(0)
    expect(echs("repair", directory).stdout).toBe("nothing to repair\n")
    expect(echs("repair", join(directory, "nowhere")).status).toBe(5)
  })
})
