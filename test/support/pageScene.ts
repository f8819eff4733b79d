// A page in front of a real server with a scripted model, for the tests of one file: opened, driven, and closed with
// everything that went wrong in it looked at.
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest"
import type { AnyRune, Client } from "#src/client/Client.ts"
import { chromium, type OpenPage, PageWorld } from "./page.ts"
import { requirePart } from "./require.ts"
import { type ServerProcess, startProcess } from "./server/Process.ts"

export class PageScene {
  readonly world = new PageWorld()
  readonly workspace = join(this.world.place, "workspace")
  readonly env = { ECHS_SCENARIOS: this.world.place, ECHS_MODEL: "scripted/talker.json" }
  private running: ServerProcess | undefined
  private connected: Client | undefined
  private opened: Array<OpenPage> = []

  get server(): ServerProcess {
    if (this.running === undefined) throw new Error("the server is not there")
    return this.running
  }

  get client(): Client {
    if (this.connected === undefined) throw new Error("the client is not there")
    return this.connected
  }

  /** Starts the server; what `talker` says is the model. */
  async begin(talker: object): Promise<void> {
    mkdirSync(this.workspace, { recursive: true })
    mkdirSync(this.world.data, { mode: 0o700 })
    writeFileSync(join(this.world.place, "talker.json"), JSON.stringify(talker))
    if (!chromium.isThere()) return
    this.running = await startProcess(this.world.data, { env: this.env })
    this.connected = await this.world.client(this.running)
  }

  async end(): Promise<void> {
    await this.running?.end("SIGKILL")
    await this.world.close()
  }

  /** Kills the server, and starts it again at the same address after `meanwhile`. */
  async crash(meanwhile: () => Promise<void>): Promise<void> {
    const port = Number(new URL(this.server.url).port)
    await this.server.end("SIGKILL")
    await meanwhile()
    this.running = await startProcess(this.world.data, { port, env: this.env })
  }

  /** Closes the pages of a test: none of them may have had trouble. */
  async closePages(): Promise<void> {
    const all = this.opened
    this.opened = []
    for (const { context, troubles } of all) {
      await context.close()
      expect(troubles).toEqual([])
    }
  }

  async open(options: Parameters<PageWorld["open"]>[1] = {}): Promise<OpenPage> {
    const one = await this.world.open(this.server, options)
    this.opened.push(one)
    return one
  }

  async create(fields: object = {}): Promise<string> {
    const { workspace } = this
    return (await this.client.call("conversation.create", { workspace, ...fields })).conversation_id
  }

  tell(id: string, content: string) {
    return this.client.call("message.post", { conversation_id: id, content })
  }

  /** Waits for a rune of this kind in the log. */
  async rune(id: string, kind: string, fits: (one: AnyRune) => boolean = () => true): Promise<AnyRune> {
    for await (const item of this.client.tail(id))
      if ("rune" in item && item.rune.kind === kind && fits(item.rune)) return item.rune
    throw new Error(`no ${kind} came`)
  }

  async runesOf(id: string): Promise<ReadonlyArray<AnyRune>> {
    const found: Array<AnyRune> = []
    for await (const item of this.client.tail(id)) {
      if ("caught_up" in item) break
      if ("rune" in item) found.push(item.rune)
    }
    return found
  }
}

export const usePageScene = (talker: object): PageScene => {
  const scene = new PageScene()
  beforeAll(() => scene.begin(talker), 120_000)
  afterAll(() => scene.end())
  beforeEach((context) => requirePart(context, chromium))
  afterEach(() => scene.closePages())
  return scene
}
