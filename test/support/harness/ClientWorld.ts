// The real programs of other people, under ECHS: each in a home of its own, with the model server of the tests as its model and
// nothing of this machine's settings. Where the programs are is said by `npm run test:clients`.
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { expect } from "vitest"
import { type ProviderServer, serverKey, startProviderServer } from "../provider-server/Server.ts"
import { directed } from "./directedModel.ts"
import { OutsideWorld } from "./OutsideWorld.ts"

export const patient = { timeout: 60_000, interval: 50 }

const programs = process.env["ECHS_CLIENTS_BIN"] ?? ""

const codexSettings = (url: string): string => `model = "test-model"
model_provider = "local"
check_for_update_on_startup = false
[model_providers.local]
name = "local"
base_url = "${url}/v1"
env_key = "LOCAL_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
`

const claudeSettings = (workspace: string): string =>
  JSON.stringify({
    hasCompletedOnboarding: true,
    theme: "dark",
    customApiKeyResponses: { approved: [serverKey.slice(-20)], rejected: [] },
    projects: { [workspace]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } }
  })

/** Processes whose environment names this place: all that was started for it, whoever their parent is by now. */
const processesOf = (mark: string): ReadonlyArray<string> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        if (!readFileSync(`/proc/${pid}/environ`, "utf8").includes(mark)) return []
        return [`${pid} ${readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")}`]
      } catch {
        return []
      }
    })

export class ClientWorld extends OutsideWorld {
  readonly home = mkdtempSync(join(tmpdir(), "home-"))
  readonly workspace = realpathSync(mkdtempSync(join(tmpdir(), "workspace-")))
  readonly model: ProviderServer

  private constructor(model: ProviderServer) {
    super()
    this.model = model
    model.respond(directed)
    mkdirSync(join(this.home, ".codex"))
    writeFileSync(join(this.home, ".codex", "config.toml"), codexSettings(model.url))
    mkdirSync(join(this.home, "claude"))
    writeFileSync(join(this.home, "claude", ".claude.json"), claudeSettings(this.workspace))
    spawnSync("git", ["init", "-q"], { cwd: this.workspace })
  }

  static async open(): Promise<ClientWorld> {
    const world = new ClientWorld(await startProviderServer())
    await world.serve()
    return world
  }

  get environment(): Readonly<Record<string, string>> {
    return {
      PATH: [programs, dirname(process.execPath), process.env["PATH"] ?? ""].join(delimiter),
      HOME: this.home,
      CODEX_HOME: join(this.home, ".codex"),
      CLAUDE_CONFIG_DIR: join(this.home, "claude"),
      LOCAL_KEY: serverKey,
      ANTHROPIC_API_KEY: serverKey,
      ANTHROPIC_BASE_URL: this.model.url,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      TERM: "xterm-256color",
      TMPDIR: tmpdir()
    }
  }

  /** Starts one of the programs in the background. */
  start(...command: ReadonlyArray<string>): string {
    return this.detached(command, this.environment, this.workspace)
  }

  command(...args: ReadonlyArray<string>) {
    return this.echs(this.environment, this.workspace)(args)
  }

  /** The text on its screen, without colors and with the gaps that the terminal would leave. */
  async shownOf(conversation: string): Promise<string> {
    const escape = String.fromCharCode(27)
    const gaps = new RegExp(`${escape}\\[(\\d*)C`, "g")
    const others = new RegExp(`${escape}(\\[[0-9;?]*[A-Za-z]|\\][^${escape}]*)`, "g")
    return (await this.screenOf(conversation))
      .replace(gaps, (_, wide) => " ".repeat(Number(wide || 1)))
      .replace(others, "")
  }

  untilState(conversation: string, state: string) {
    const last = async (): Promise<string | undefined> => (await this.states(conversation)).split(" ").at(-1)
    return expect.poll(last, patient).toBe(state)
  }

  async eventsOf(conversation: string): Promise<ReadonlyArray<Readonly<Record<string, unknown>>>> {
    return (await this.runes(conversation))
      .filter(({ kind }) => kind === "harness.event")
      .map(({ payload }) => payload["event"] as Readonly<Record<string, unknown>>)
  }

  async kindsOf(conversation: string, family: string): Promise<ReadonlyArray<string>> {
    return (await this.runes(conversation)).map(({ kind }) => kind).filter((kind) => kind.startsWith(family))
  }

  /** What runs for this place, the server of the tests aside. */
  leftRunning(): ReadonlyArray<string> {
    const own = String(this.server?.child.pid)
    return processesOf(`HOME=${this.home}`).filter((line) => !line.startsWith(`${own} `))
  }

  /** The process that this one has started. */
  childOf(pid: number): number {
    const child = readdirSync("/proc").find((name) => {
      try {
        return readFileSync(`/proc/${name}/stat`, "utf8").split(") ").at(-1)?.split(" ")[1] === String(pid)
      } catch {
        return false
      }
    })
    return Number(child)
  }

  async end(): Promise<void> {
    await this.close()
    await expect.poll(() => this.leftRunning(), patient).toEqual([])
    await this.model.close()
  }
}
