// A server with everything a person gets from `echs serve`: the built-in tools in the sandbox that was found, hooks, MCP
// servers and tools of clients. Models are scripted. Closed, and its directories removed, after the test that opened it.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach } from "vitest"
import type { RunningServer } from "#src/main/ServeOptions.ts"
import { startTestServer, type TestOptions, testEnvironment } from "./server/graph.ts"
import { Socket } from "./server/Socket.ts"

export interface ExtendedOptions extends Partial<TestOptions> {
  readonly variables?: Readonly<Record<string, string>>
}

export interface ExtendedServer extends RunningServer {
  readonly lines: Array<string>
  readonly workspace: string
  readonly connect: (token?: string) => Promise<Socket>
}

export const node = process.execPath

export const useExtendedServers = () => {
  let servers: Array<RunningServer> = []
  let directories: Array<string> = []
  const directory = (): string => {
    const path = mkdtempSync(join(tmpdir(), "echs-extended-"))
    directories.push(path)
    return path
  }
  afterEach(async () => {
    const all = servers
    servers = []
    await Promise.all(all.map((server) => server.close()))
    for (const path of directories) rmSync(path, { recursive: true, force: true })
    directories = []
  })
  const open = async (options: ExtendedOptions = {}, workspace = directory()): Promise<ExtendedServer> => {
    const lines: Array<string> = []
    const { variables = {}, ...rest } = options
    const running = await startTestServer({
      model: "scripted/echo",
      runtime: { deltaEveryMs: 0 },
      writeLine: (line) => void lines.push(line),
      environment: testEnvironment(variables),
      ...rest,
      dataDirectory: options.dataDirectory ?? directory()
    })
    servers.push(running)
    return {
      ...running,
      lines,
      workspace,
      connect: async (token = running.token) => {
        const socket = await Socket.open(running.url)
        await socket.hello(token)
        return socket
      }
    }
  }
  return { directory, open }
}

/** Writes a file, and the directories above it. */
export const put = (path: string, content: string | object, mode = 0o644): void => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content), { mode })
}

/** A conversation that is followed from its beginning. */
export const follow = async (
  server: ExtendedServer,
  socket: Socket,
  fields: Readonly<Record<string, unknown>> = {}
): Promise<string> => {
  const id = await socket.create({ workspace: server.workspace, ...fields })
  await socket.ok("subscribe", { conversation_id: id })
  return id
}
