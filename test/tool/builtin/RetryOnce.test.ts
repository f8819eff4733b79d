// Goal: a sandbox that could not be made because the machine changed under it is made once more, and the program runs once.
// Method: the real sandbox, whose first plan names a place that is gone by the time it is made.
import { mkdirSync, readFileSync, rmdirSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { allowedEnvironment } from "#src/sandbox/Environment.ts"
import { makeProcesses } from "#src/sandbox/process/Processes.ts"
import type { SandboxPort } from "#src/sandbox/SandboxPort.ts"
import { requirePart } from "../../support/require.ts"
import { bubblewrap, type Ground, makeGround, usualPath } from "../../support/sandbox.ts"

let ground: Ground

beforeEach(async (context) => {
  requirePart(context, bubblewrap)
  ground = await makeGround()
})
afterEach(() => ground?.clear())

/** A sandbox whose first plans have a place in them that is not there. */
const outdated = (sandbox: SandboxPort, plans: number): SandboxPort => {
  let made = 0
  return {
    ...sandbox,
    prepare: (request) => {
      made += 1
      if (made > plans) return sandbox.prepare(request)
      const gone = join(ground.base, "gone")
      mkdirSync(gone)
      const command = sandbox.prepare({ ...request, readable: [gone] })
      rmdirSync(gone)
      return command
    }
  }
}

const run = async (plans: number) => {
  const processes = makeProcesses({
    sandbox: outdated(ground.sandbox, plans),
    environment: allowedEnvironment({ PATH: usualPath }),
    overflowDirectory: join(ground.base, "overflow"),
    spares: false
  })
  try {
    return await processes.run({
      argv: ["sh", "-c", "echo ran >> ran.txt"],
      directory: ground.workspace,
      writable: [ground.workspace],
      network: false,
      outputCharsMax: 1_000,
      signal: new AbortController().signal
    })
  } finally {
    await processes.close()
  }
}

it("is made once more when it was outdated, and the program has run once", async () => {
  expect(await run(1)).toMatchObject({ end: "exited", exit_code: 0 })
  expect(readFileSync(join(ground.workspace, "ran.txt"), "utf8")).toBe("ran\n")
})

it("is not made for ever", async () => {
  await expect(run(2)).rejects.toMatchObject({ code: "sandbox_failed" })
})
