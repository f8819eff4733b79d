// A data directory with a server on it, and outside agents that run there: started, asked and looked at as a person would.
import { chmodSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { expect } from "vitest"
import { connectHolder } from "#src/harness/holder/HolderLink.ts"
import { commandOn } from "../cli.ts"
import { type ServerProcess, startProcess } from "../server/Process.ts"

export const waiting = { timeout: 20_000, interval: 20 }

export interface Rune {
  readonly kind: string
  readonly payload: Readonly<Record<string, unknown>>
}

/** A connection that was kept open may be closed by the server just now: asked again over a new one. */
const fetchOnce = (url: string, init: RequestInit): Promise<Response> => fetch(url, init).catch(() => fetch(url, init))

export class OutsideWorld {
  readonly data = mkdtempSync(join(tmpdir(), "outside-"))
  readonly bin = mkdtempSync(join(tmpdir(), "bin-"))
  server: ServerProcess | undefined

  /** Puts a program of the tests under the name of another into the path. */
  install(name: string, script: string): void {
    const program = join(this.bin, name)
    writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${script}' "$@"\n`)
    chmodSync(program, 0o755)
  }

  async serve(port?: number): Promise<ServerProcess> {
    this.server = await startProcess(this.data, port === undefined ? {} : { port })
    return this.server
  }

  echs(env: Readonly<Record<string, string>> = {}, cwd: string = this.bin) {
    const path = `${this.bin}${delimiter}${process.env["PATH"]}`
    return commandOn(this.data, { cwd, env: { PATH: path, TMPDIR: tmpdir(), ...env } })
  }

  /** Starts a program in the background; returns its conversation. */
  detached(command: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}, cwd: string = this.bin): string {
    const { code, stderr, stdout } = this.echs(env, cwd)(["run", "--detach", "--json", ...command])
    expect([code, stderr]).toEqual([0, ""])
    return (JSON.parse(stdout) as { readonly conversation_id: string }).conversation_id
  }

  async rpc(op: string, fields: Readonly<Record<string, unknown>> = {}): Promise<Readonly<Record<string, unknown>>> {
    const { token, url } = this.server!
    const response = await fetchOnce(`${url}/v1/rpc`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ op, ...fields })
    })
    const { error, ok } = (await response.json()) as Record<string, unknown>
    return (ok ?? { error }) as Readonly<Record<string, unknown>>
  }

  async items(
    op: string,
    fields: Readonly<Record<string, unknown>> = {}
  ): Promise<ReadonlyArray<Record<string, unknown>>> {
    return ((await this.rpc(op, fields))["items"] ?? []) as ReadonlyArray<Record<string, unknown>>
  }

  async runes(conversation: string): Promise<ReadonlyArray<Rune>> {
    const { token, url } = this.server!
    const headers = { authorization: `Bearer ${token}` }
    const text = await (await fetchOnce(`${url}/v1/conversations/${conversation}/runes`, { headers })).text()
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Rune)
  }

  async states(conversation: string): Promise<string> {
    return (await this.runes(conversation))
      .filter(({ kind }) => kind === "agent.state_changed")
      .map(({ payload }) => payload["sub_state"] ?? payload["state"])
      .join(" ")
  }

  untilClosed(conversation: string) {
    return expect.poll(async () => (await this.runes(conversation)).at(-1)?.kind, waiting).toBe("session.closed")
  }

  untilAsked() {
    return expect.poll(async () => (await this.items("approval.list")).length, waiting).toBe(1)
  }

  agentFile(conversation: string): { readonly token: string } {
    return JSON.parse(readFileSync(join(this.data, "harness", conversation, "agent.json"), "utf8"))
  }

  /** What the program has printed so far, as somebody who comes now is shown it. */
  async screenOf(conversation: string): Promise<string> {
    const shown = Promise.withResolvers<string>()
    const link = await connectHolder(
      join(this.data, "harness", conversation),
      { role: "viewer" },
      {
        frame: (frame) => frame.type === "output" && shown.resolve(Buffer.from(frame.bytes).toString("utf8")),
        closed: () => shown.resolve("")
      }
    )
    const text = await shown.promise
    link.close()
    // Lines that the terminal broke are whole again.
    return text.replaceAll("\r\n", "")
  }

  /** Keys, as somebody types them who is attached. */
  async type(conversation: string, keys: string): Promise<void> {
    const directory = join(this.data, "harness", conversation)
    const link = await connectHolder(directory, { role: "typist" }, { frame: () => undefined, closed: () => undefined })
    link.send({ type: "input", bytes: Buffer.from(keys) })
    link.send({ type: "leave", value: {} })
    link.close()
  }

  async close(): Promise<void> {
    for (const { conversation_id: id } of await this.items("harness.list"))
      await this.rpc("conversation.close", { conversation_id: id })
    await expect.poll(async () => (await this.items("harness.list")).length, waiting).toBe(0)
    await this.server?.end("SIGTERM")
  }
}
