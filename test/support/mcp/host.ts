// MCP servers for tests: the product's source of tools over real processes in the sandbox that was found, and a
// conversation that is nothing but its settings.
import { mkdtempSync, rmSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { afterEach, expect } from "vitest"
import type { Command } from "#src/machine/Command.ts"
import { type ConversationState, emptyConversation } from "#src/machine/State.ts"
import type { AgentId, CallId, ConversationId, TurnId } from "#src/rune/Ids.ts"
import { detectSandbox } from "#src/sandbox/Detect.ts"
import { allowedEnvironment } from "#src/sandbox/Environment.ts"
import { makeProcesses } from "#src/sandbox/process/Processes.ts"
import type { ProcessPort } from "#src/sandbox/process/ProcessPort.ts"
import { McpTools } from "#src/tool/mcp/McpTools.ts"
import { globalServers } from "#src/tool/mcp/Settings.ts"
import type { Tool } from "#src/tool/Tool.ts"
import type { ToolOutcome } from "#src/tool/ToolPort.ts"
import { runTool, type TestContext } from "../tool/runTool.ts"

const agentId = "agt_0000" as AgentId
const badServer = join(import.meta.dirname, "badServer.ts")

export const command = (mode: string): ReadonlyArray<string> => [process.execPath, badServer, mode]

export interface McpHost {
  readonly mcp: McpTools
  readonly state: ConversationState
  readonly troubles: Array<string>
  readonly progress: Array<string>
  readonly submitted: Array<Command>
  readonly ready: () => Promise<ReadonlyArray<Tool>>
  readonly call: (name: string, input?: object, signal?: AbortSignal) => Promise<ToolOutcome>
}

const stateOf = (workspace: string): ConversationState => {
  const state = emptyConversation("conv_00000001" as ConversationId)
  return { ...state, session: { ...state.session, config: { workspace }, root_agent_id: agentId } }
}

export const useMcpHosts = () => {
  let opened: Array<{ readonly mcp: McpTools; readonly processes: ProcessPort; readonly directory: string }> = []
  afterEach(async () => {
    for (const { directory, mcp, processes } of opened.splice(0)) {
      await mcp.close()
      await processes.close()
      rmSync(directory, { recursive: true, force: true })
    }
    opened = []
  })
  return async (servers: object, options: { readonly idleMs?: number } = {}): Promise<McpHost> => {
    const directory = mkdtempSync(join(tmpdir(), "echs-mcp-"))
    const path = process.env["PATH"] ?? ""
    const sandbox = await detectSandbox({ dataDirectory: join(directory, "data"), home: homedir(), path })
    const environment = allowedEnvironment({ PATH: path })
    const processes = makeProcesses({ sandbox, environment, overflowDirectory: join(directory, "overflow") })
    const troubles: Array<string> = []
    const progress: Array<string> = []
    const submitted: Array<Command> = []
    const mcp = new McpTools({
      ...options,
      servers: globalServers(servers, () => undefined),
      processes,
      isContained: sandbox.contained,
      version: "0.0.0-test",
      nowMs: () => Date.now(),
      monotonicMs: () => performance.now(),
      onTrouble: ({ message, server }) => void troubles.push(`${server}: ${message}`)
    })
    opened.push({ mcp, processes, directory })
    const state = stateOf(directory)
    let calls = 0
    const contextOf = (signal: AbortSignal): TestContext => ({
      conversation_id: state.conversation_id,
      agent_id: agentId,
      turn_id: "turn_1" as TurnId,
      call_id: `call_${++calls}` as CallId,
      attempt: 1,
      workspace: directory,
      signal,
      progress: (_stream, chunk) => void progress.push(chunk),
      conversation: {
        state: () => state,
        submit: async (one) => void submitted.push(one),
        changed: () => new Promise(() => undefined)
      }
    })
    const never = new AbortController().signal
    return {
      mcp,
      state,
      troubles,
      progress,
      submitted,
      ready: async () => {
        await Effect.runPromise(mcp.ready(state, agentId))
        return mcp.tools(state)
      },
      call: async (name, input = {}, signal = never) => {
        const tool = mcp.find(state, agentId, name)
        expect(tool).toBeDefined()
        return runTool(tool!, input as Readonly<Record<string, unknown>>, contextOf(signal))
      }
    }
  }
}
