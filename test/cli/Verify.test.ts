// Goal: `echs verify` says what the engine found, in words and in JSON, with an exit code to match. Method: reports of
// the test's own; the engine's verification has its tests beside the engine.
import { describe, expect, it } from "vitest"
import { makeVerify, type VerifyReport } from "#src/cli/verify.ts"
import { recordingTerminal } from "../support/terminal.ts"

const sound: VerifyReport = { logs: 2, entries: 1_234, bytes: 56_789, faults: [] }
const damaged: VerifyReport = {
  ...sound,
  faults: [{ file: "runelog/conv_1/0001.seg", offset: 4_096, reason: "checksum" }]
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
      output: "sound: 1,234 entries in 2 logs at /default\n",
      complaints: ""
    })
  })

  it("names file, offset and reason of every fault", async () => {
    const { code, output } = await verify(damaged, "--data", "/data")
    expect(code).toBe(1)
    expect(output).toBe(
      "damaged runelog/conv_1/0001.seg at byte 4096: checksum\n1 faults: 1,234 entries in 2 logs at /data\n"
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
