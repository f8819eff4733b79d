// The processes of a server for tests of tools: the sandbox that is found on this machine, in a directory of the test
// file's own.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { detectSandbox } from "#src/sandbox/Detect.ts"
import { allowedEnvironment } from "#src/sandbox/Environment.ts"
import { makeProcesses } from "#src/sandbox/process/Processes.ts"
import type { ProcessPort } from "#src/sandbox/process/ProcessPort.ts"

export const searchPath = process.env["PATH"] ?? ""

export const useProcesses = (): ProcessPort => {
  let directory = ""
  let opened: ProcessPort | undefined
  const processes = (): ProcessPort => {
    if (opened === undefined) throw new Error("processes are there from beforeAll on")
    return opened
  }
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "echs-processes-"))
    const sandbox = await detectSandbox({ dataDirectory: directory, home: directory, path: searchPath })
    const environment = allowedEnvironment(process.env)
    opened = makeProcesses({ sandbox, environment, overflowDirectory: join(directory, "overflow") })
  })
  afterAll(async () => {
    await opened?.close()
    rmSync(directory, { recursive: true, force: true })
  })
  return {
    run: (request) => processes().run(request),
    start: (request) => processes().start(request),
    close: () => processes().close()
  }
}
