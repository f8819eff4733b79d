// A server for a test: the real store, runtime and door in a directory of its own, with scripted models. Closed after the
// test that opened it; then every log it left is replayed and checked, and the directory removed.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach } from "vitest"
import type { HookPort } from "#src/hook/HookPort.ts"
import type { RunningServer } from "#src/main/ServeOptions.ts"
import { checkDirectory } from "../runtime/checkDirectory.ts"
import { type FunctionTool, functionTools } from "../tool/FunctionTools.ts"
import { bareRooms, startTestServer, type TestOptions } from "./graph.ts"
import { Socket } from "./Socket.ts"

export interface TestServerOptions extends Partial<TestOptions> {
  readonly tools?: ReadonlyArray<FunctionTool>
  readonly hooks?: HookPort
}

export interface TestServer extends RunningServer {
  /** Lines of its own log. */
  readonly lines: Array<string>
  readonly connect: (token?: string) => Promise<Socket>
}

export const openServer = async (dataDirectory: string, options: TestServerOptions = {}): Promise<TestServer> => {
  const lines: Array<string> = []
  const { hooks, tools = [], ...rest } = options
  const given: TestOptions = {
    model: "scripted/echo",
    runtime: { deltaEveryMs: 0 },
    // A thousand conversations take longer to close on a machine that does other things.
    drainMs: 60_000,
    writeLine: (line) => void lines.push(line),
    ...rest,
    dataDirectory
  }
  const rooms = bareRooms({ tools: functionTools(tools), ...(hooks === undefined ? {} : { hooks }) })
  const running = await startTestServer(given, rooms)
  return {
    ...running,
    lines,
    connect: async (token = running.token) => {
      const socket = await Socket.open(running.url)
      await socket.hello(token)
      return socket
    }
  }
}

export const useServers = () => {
  let servers: Array<TestServer> = []
  let directories: Array<string> = []
  const unchecked = new Set<string>()
  const directory = (): string => {
    const path = mkdtempSync(join(tmpdir(), "echs-server-"))
    directories.push(path)
    return path
  }
  afterEach(async () => {
    const all = servers
    servers = []
    await Promise.all(all.map((server) => server.close()))
    const left = directories
    directories = []
    try {
      for (const path of left) if (!unchecked.has(path)) await checkDirectory(path)
    } finally {
      unchecked.clear()
      for (const path of left) rmSync(path, { recursive: true, force: true })
    }
  })
  return {
    directory,
    /** The logs in this directory are broken on purpose, or too many. */
    leaveUnchecked: (path: string): void => void unchecked.add(path),
    open: async (options: TestServerOptions = {}): Promise<TestServer> => {
      const server = await openServer(options.dataDirectory ?? directory(), options)
      servers.push(server)
      return server
    }
  }
}
