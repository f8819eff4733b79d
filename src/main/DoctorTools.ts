// What `echs doctor` finds out about tools: the MCP servers of the settings are started as a server would start them, for
// the time it takes to ask for their tools, and what a model could not be offered is named. Nothing stays behind.
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type { Finding } from "../cli/verbs/doctor.ts"
import type { Environment } from "../config/Environment.ts"
import type { ServerSettings } from "../config/Settings.ts"
import { emptyConversation } from "../machine/State.ts"
import type { AgentId, ConversationId } from "../rune/Ids.ts"
import type { BlobPort } from "../tool/Output.ts"
import { offerTools } from "../turn/ToolOffer.ts"
import { makeExtensions } from "./Extensions.ts"
import { assembleTools } from "./Tools.ts"

export interface DoctorToolsOptions {
  readonly environment: Environment
  readonly version: string
  readonly settings: Pick<ServerSettings, "mcpServers" | "sandbox">
}

const nowhere = (): Promise<never> => Promise.reject(new Error("nothing is kept here"))
const noBlobs: BlobPort = { keep: nowhere, read: nowhere }
const nobody = "agt_doctor" as AgentId

const lookAt = async (options: DoctorToolsOptions, directory: string): Promise<ReadonlyArray<Finding>> => {
  const { environment, settings, version } = options
  const troubles: Array<string> = []
  const log = {
    write: (_level: string, _text: string, facts?: Readonly<Record<string, unknown>>) =>
      void troubles.push(`${String(facts?.["server"] ?? "")}: ${String(facts?.["message"] ?? "")}`)
  }
  const { close, tools } = await assembleTools({
    dataDirectory: directory,
    environment,
    blobs: noBlobs,
    sandbox: settings.sandbox,
    extend: (parts) =>
      makeExtensions({ dataDirectory: directory, environment, version, mcpServers: settings.mcpServers, log }, parts)
  })
  try {
    const state = emptyConversation("conv_doctor" as ConversationId)
    await Effect.runPromise(tools.ready?.(state, nobody) ?? Effect.void)
    const { leftOut, offered } = offerTools(tools, state, nobody)
    const problems = [...new Set([...troubles, ...leftOut.map((what) => `not offered to a model: ${what}`)])]
    const text = `${offered.length} offered to a model`
    return [
      { name: "tools", level: problems.length === 0 ? "good" : "notice", text },
      ...problems.map((problem): Finding => ({ name: "tools", level: "notice", text: problem.slice(0, 2_000) }))
    ]
  } finally {
    await close()
  }
}

export const toolFindings = async (options: DoctorToolsOptions): Promise<ReadonlyArray<Finding>> => {
  if (Object.keys(options.settings.mcpServers).length === 0) return []
  const directory = await mkdtemp(join(tmpdir(), "echs-doctor-"))
  try {
    return await lookAt(options, directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
