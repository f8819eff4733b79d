// Goal: `echs open` prints an address that signs a browser in, once, and holds no token. Method: the command as a process
// against a real server; the ticket is used as the page uses it.
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { commandOn } from "../support/cli.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"

const data = mkdtempSync(join(tmpdir(), "echs-open-"))
let server: ServerProcess

beforeAll(async () => {
  server = await startProcess(data)
})

afterAll(async () => {
  await server.end("SIGKILL")
  rmSync(data, { recursive: true, force: true })
})

describe("echs open", () => {
  it("prints an address whose ticket works once, and no token", async () => {
    const { code, stdout } = commandOn(data)(["open", "--print", "--json"])
    expect(code).toBe(0)
    const { opened, url } = JSON.parse(stdout) as { readonly url: string; readonly opened: boolean }
    expect(opened).toBe(false)
    expect(stdout).not.toContain(readFileSync(join(data, "token"), "utf8").trim())
    const [, ticket] = /^http:\/\/127\.0\.0\.1:\d+\/#ticket=([\w-]+)$/.exec(url) ?? []
    const begin = () =>
      fetch(`${server.url}/v1/session`, { method: "POST", body: JSON.stringify({ ticket }) }).then(
        ({ status }) => status
      )
    expect([await begin(), await begin()]).toEqual([200, 401])
  })

  it("says so where no server runs", () => {
    const elsewhere = mkdtempSync(join(tmpdir(), "echs-open-none-"))
    try {
      expect(commandOn(elsewhere)(["open", "--print"])).toMatchObject({ code: 3, stdout: "" })
    } finally {
      rmSync(elsewhere, { recursive: true, force: true })
    }
  })
})
