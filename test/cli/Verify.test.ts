// Goal: `echs verify` says what the engine found, in words and in JSON, with an exit code to match. Method: reports of
// the test's own for the words; the real command over a real log, sound and then damaged, for the rest.
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { Runelog } from "#runelog/Runelog.ts"
import { makeVerify, type VerifyReport } from "#src/cli/verify.ts"
import { recordingTerminal } from "../support/terminal.ts"

const sound: VerifyReport = {
  logs: 2,
  segments: 3,
  sealed: 1,
  entries: 1_234,
  batches: 0,
  bytes: 56_789,
  problems: [],
  notes: []
}
const damaged: VerifyReport = {
  ...sound,
  problems: [{ file: "runelog/conv_1/0001.seg", offset: 4_096, reason: "checksum" }]
}

const verify = async (report: VerifyReport | "missing", ...args: ReadonlyArray<string>) => {
  const terminal = recordingTerminal()
  const verb = makeVerify({ dataDirectory: (flag) => flag ?? "/default", verify: async () => report })
  return { code: await verb.run(args, terminal), output: terminal.output(), complaints: terminal.complaints() }
}

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
      complaints: "echs verify: there is no data at /default\n"
    })
  })

  it.each([["--fast"], ["somewhere"]])("refuses %s with exit code 2", async (argument) => {
    expect(await verify(sound, argument)).toMatchObject({ code: 2, output: "" })
  })
})

describe("the command over a real log", () => {
  const launcher = fileURLToPath(new URL("../../src/cli/echs.js", import.meta.url))
  const echs = (directory: string, ...args: ReadonlyArray<string>) =>
    spawnSync(process.execPath, [launcher, "verify", "--data", directory, ...args], { encoding: "utf8" })

  it("tells a sound log from one with a single wrong bit, and changes neither", async () => {
    const directory = mkdtempSync(join(tmpdir(), "echs-verify-"))
    try {
      const log = await Runelog.open({ directory })
      await log.append("conv_1", 1, [{ body: "first" }, { body: "second" }])
      await log.close()
      expect(echs(directory)).toMatchObject({
        status: 0,
        stderr: "",
        stdout: `sound: 2 entries in 1 log, at ${directory}\n`
      })

      const folder = join(directory, "runelog", "conv_1")
      const segment = join(folder, readdirSync(folder).find((name) => name.endsWith(".seg")) ?? "")
      const bytes = readFileSync(segment)
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
      writeFileSync(segment, bytes)
      const run = echs(directory, "--json")
      expect(run).toMatchObject({ status: 1, stderr: "" })
      expect(JSON.parse(run.stdout).problems).toMatchObject([{ file: segment, log: "conv_1" }])
      expect(readFileSync(segment)).toEqual(bytes)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })
})
