// What `echs doctor` finds out about tools: the MCP servers of the settings are started as a server would start them, for
// the time it takes to ask for their tools, and what a model could not be offered is named. Nothing stays behind.
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Finding } from "../cli/verbs/doctor.ts"
import type { Environment } from "../config/Environment.ts"
import type { ServerSettings } from "../config/Settings.ts"
import { type BlobPort, OutputBlobs } from "../contract/Blobs.ts"
import { DurableNotices } from "../contract/DurableNotices.ts"
import { KnownSecrets } from "../contract/KnownSecrets.ts"
import { ServerLog } from "../contract/ServerLog.ts"
import { emptyConversation } from "../machine/State.ts"
import type { AgentId, ConversationId } from "../rune/Ids.ts"
import { ToolRouter } from "../tool/ToolService.ts"
import { offerTools } from "../turn/ToolOffer.ts"
import { agentRooms, machineRoom } from "./Rooms.ts"

export interface DoctorToolsOptions {
  readonly environment: Environment
  readonly version: string
  readonly settings: Pick<ServerSettings, "mcpServers" | "sandbox">
}

const nowhere = (): Promise<never> => Promise.reject(new Error("nothing is kept here"))
const noBlobs: BlobPort = { keep: nowhere, read: nowhere }
const nobody = "agt_doctor" as AgentId

const lookAt = (options: DoctorToolsOptions, directory: string): Promise<ReadonlyArray<Finding>> => {
  const { environment, settings, version } = options
  const troubles: Array<string> = []
  const log = Layer.succeed(ServerLog, {
    level: "warn",
    write: (_level, _text, facts) =>
      void troubles.push(`${String(facts?.["server"] ?? "")}: ${String(facts?.["message"] ?? "")}`)
  })
  const given = { dataDirectory: directory, environment, version, ...settings }
  const rooms = agentRooms(given).pipe(
    Layer.provide([
      machineRoom(given),
      Layer.succeed(OutputBlobs, noBlobs),
      KnownSecrets.layer([]),
      DurableNotices.layer
    ]),
    Layer.provide(log)
  )
  return Effect.runPromise(Effect.provide(findings(troubles), rooms))
}

const findings = Effect.fnUntraced(function* (troubles: ReadonlyArray<string>) {
  const tools = yield* ToolRouter
  const state = emptyConversation("conv_doctor" as ConversationId)
  yield* tools.ready?.(state, nobody) ?? Effect.void
  const { leftOut, offered } = offerTools(tools, state, nobody)
  const problems = [...new Set([...troubles, ...leftOut.map((what) => `not offered to a model: ${what}`)])]
  const text = `${offered.length} offered to a model`
  return [
    { name: "tools", level: problems.length === 0 ? "good" : "notice", text } satisfies Finding,
    ...problems.map((problem): Finding => ({ name: "tools", level: "notice", text: problem.slice(0, 2_000) }))
  ]
})

export const toolFindings = async (options: DoctorToolsOptions): Promise<ReadonlyArray<Finding>> => {
  if (Object.keys(options.settings.mcpServers).length === 0) return []
  const directory = await mkdtemp(join(tmpdir(), "echs-doctor-"))
  try {
    return await lookAt(options, directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
