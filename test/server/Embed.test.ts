// Goal: a program can hold a server as `echs serve` would run it, and gets a typed error where it cannot. Method: the
// export `echs/server` itself, with the product's client.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { Client } from "#src/client/Client.ts"
import { BindRefused, type EmbedOptions, type RunningServer, SettingInvalid, startServer } from "#src/main/Embed.ts"

let dataDirectory = ""
let running: Array<RunningServer> = []

beforeEach(() => {
  dataDirectory = mkdtempSync(join(tmpdir(), "echs-embed-"))
})
afterEach(async () => {
  for (const server of running) await server.close()
  running = []
  rmSync(dataDirectory, { recursive: true, force: true })
})

const start = async (more: Partial<EmbedOptions> = {}): Promise<RunningServer> => {
  const variables = { PATH: process.env["PATH"] }
  const server = await startServer({ dataDirectory, port: 0, variables, writeLine: () => undefined, ...more })
  running.push(server)
  return server
}

describe("a server in a program", () => {
  it("is one that a client can use, keeps its data, and goes on where the last one stopped", async () => {
    const first = await start()
    const client = await Client.connect({ endpoint: first })
    const { conversation_id } = await client.call("conversation.create", { title: "kept", model: "scripted/echo" })
    await client.call("message.post", { conversation_id, content: "hello" })
    for await (const item of client.tail(conversation_id))
      if ("rune" in item && item.rune.kind === "turn.completed") break
    await client.close()
    await first.close()
    const again = await Client.connect({
      endpoint: await start({ dataDirectory: relative(process.cwd(), dataDirectory) })
    })
    expect((await again.call("conversation.list", {})).items).toMatchObject([
      { conversation_id, title: "kept", turns: 1 }
    ])
    await again.close()
  })

  it("takes what is given here, then the variables, then the file of the data directory", async () => {
    writeFileSync(join(dataDirectory, "config.json"), JSON.stringify({ model: "scripted/from-file", log: "debug" }))
    const modelOf = async (more: Partial<EmbedOptions>): Promise<string | undefined> => {
      const server = await start(more)
      const client = await Client.connect({ endpoint: server })
      const { conversation_id } = await client.call("conversation.create", {})
      const { agents } = await client.call("conversation.get", { conversation_id })
      await client.close()
      await server.close()
      return agents[0]?.model
    }
    const lines: Array<string> = []
    expect(await modelOf({ writeLine: (line) => void lines.push(line) })).toBe("scripted/from-file")
    expect(lines.some((line) => line.includes('"debug"'))).toBe(true)
    const variables = { ECHS_MODEL: "scripted/from-variable" }
    expect(await modelOf({ variables })).toBe("scripted/from-variable")
    expect(await modelOf({ variables, model: "scripted/given" })).toBe("scripted/given")
  })

  it("is refused with the reason where it cannot be", async () => {
    await expect(start({ dataDirectory: "" })).rejects.toBeInstanceOf(SettingInvalid)
    await expect(start({ port: 70_000 })).rejects.toBeInstanceOf(SettingInvalid)
    await expect(start({ host: "0.0.0.0" })).rejects.toBeInstanceOf(BindRefused)
    const first = await start()
    await expect(start()).rejects.toMatchObject({ _tag: expect.any(String) })
    await expect(Client.connect({ endpoint: first }).then((client) => client.close())).resolves.toBeUndefined()
  })
})
