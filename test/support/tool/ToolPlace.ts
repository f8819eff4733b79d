// A workspace for tests of tools: a directory of the test's own with something outside it that must not change, tools
// to run on it, and the context a call comes with.
import { createHash } from "node:crypto"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach } from "vitest"
import type { BlobPort } from "#src/contract/Blobs.ts"
import { type CallState, type ConversationState, emptyConversation } from "#src/machine/State.ts"
import type { AgentId, ConversationId } from "#src/rune/Ids.ts"
import type { Input, Tool } from "#src/tool/Tool.ts"
import type { ToolOutcome } from "#src/tool/ToolPort.ts"
import { runTool, type TestContext } from "./runTool.ts"

/** Blobs in memory, under their hash. */
export const memoryBlobs = (): BlobPort & { readonly kept: Map<string, Buffer> } => {
  const kept = new Map<string, Buffer>()
  return {
    kept,
    keep: async (source) => {
      const pieces: Array<Uint8Array> = []
      if (typeof source === "string") pieces.push(Buffer.from(source))
      else for await (const piece of source) pieces.push(piece)
      const bytes = Buffer.concat(pieces)
      const sha256 = createHash("sha256").update(bytes).digest("hex")
      kept.set(sha256, bytes)
      return { sha256, bytes: bytes.length }
    },
    read: async (sha256, { bytesMax, offset }) => {
      const bytes = kept.get(sha256)
      if (bytes === undefined) throw new Error("no such blob")
      return { bytes: bytes.subarray(offset, offset + bytesMax), size: bytes.length }
    }
  }
}

export interface RunOptions {
  readonly signal?: AbortSignal
  readonly said?: Array<string>
  readonly network?: boolean
}

export interface ToolPlace {
  /** Holds the workspace, and room beside it. */
  readonly outside: string
  readonly workspace: string
  readonly data: string
  readonly context: (options?: RunOptions) => TestContext
  readonly run: (tool: Tool, input: Input, options?: RunOptions) => Promise<ToolOutcome>
}

export const usePlace = (): ToolPlace => {
  let outside = ""
  beforeEach(() => {
    outside = mkdtempSync(join(tmpdir(), "echs-tools-"))
    mkdirSync(join(outside, "workspace"))
    mkdirSync(join(outside, "data"))
  })
  afterEach(() => rmSync(outside, { recursive: true, force: true }))
  const context = (options: RunOptions = {}): TestContext =>
    ({
      conversation_id: "conv_00000000",
      agent_id: "agt_00000000",
      call_id: "call_1",
      attempt: 1,
      workspace: join(outside, "workspace"),
      signal: options.signal ?? new AbortController().signal,
      ...(options.network === undefined ? {} : { network: options.network }),
      progress: (_stream: string, chunk: string) => void options.said?.push(chunk)
    }) as unknown as TestContext
  return {
    get outside() {
      return outside
    },
    get workspace() {
      return join(outside, "workspace")
    },
    get data() {
      return join(outside, "data")
    },
    context,
    run: (tool, input, options) => runTool(tool, input, context(options))
  }
}

export const rootAgent = "agt_00000000" as AgentId

/** The state of a conversation as far as tools look at it. */
export const conversationWith = (
  config: ConversationState["session"]["config"],
  more: Partial<ConversationState> & { readonly agent?: Readonly<Record<string, unknown>> } = {}
): ConversationState => {
  const empty = emptyConversation("conv_00000000" as ConversationId)
  const { agent, ...rest } = more
  return {
    ...empty,
    ...rest,
    session: { ...empty.session, config, root_agent_id: rootAgent },
    agents: [{ agent_id: rootAgent, role: "main", tools: null, parent_id: null, workspace: null, ...agent }]
  } as unknown as ConversationState
}

export const callOf = (name: string, input: unknown, more: Partial<CallState> = {}): CallState =>
  ({
    call_id: "call_1",
    agent_id: rootAgent,
    tool_name: name,
    arguments: input,
    arguments_hash: "0".repeat(64),
    attempt: 0,
    ...more
  }) as unknown as CallState
