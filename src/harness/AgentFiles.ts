// The directory of one outside agent: who it is, the token with which its program reports, the files that the program was
// started with. A server that starts again finds its agents here.
import { createHash, randomBytes } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { writePrivate } from "./holder/HolderFiles.ts"
import type { LaunchPlan } from "./Port.ts"

export interface AgentFile {
  readonly conversationId: string
  readonly agentId: string
  readonly harness: string
  readonly workspace: string
  readonly token: string
}

export interface AgentPlace extends AgentFile {
  readonly directory: string
}

const homeOf = (dataDirectory: string): string => join(dataDirectory, "harness")

export const directoryOf = (dataDirectory: string, conversationId: string): string =>
  join(homeOf(dataDirectory), conversationId)

export const newToken = (): string => randomBytes(32).toString("base64url")

/** Tokens are looked up by their hash: how long a look takes says nothing about one. */
export const tokenKey = (token: string): string => createHash("sha256").update(token).digest("hex")

export const writeAgent = ({ directory, ...file }: AgentPlace): void => {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  writePrivate(join(directory, "agent.json"), `${JSON.stringify(file)}\n`)
}

export const writePlan = (directory: string, { files }: LaunchPlan): void => {
  for (const { executable, name, text } of files)
    writePrivate(join(directory, name), text, executable === true ? 0o700 : 0o600)
}

const readAgent = (directory: string): AgentPlace | undefined => {
  try {
    const file: Partial<AgentFile> = JSON.parse(readFileSync(join(directory, "agent.json"), "utf8"))
    const isWhole = typeof file.conversationId === "string" && typeof file.token === "string"
    return isWhole && typeof file.agentId === "string" ? { ...(file as AgentFile), directory } : undefined
  } catch {
    return undefined
  }
}

/** Agents that another life of the server has left. */
export const storedAgents = (dataDirectory: string): ReadonlyArray<AgentPlace> => {
  try {
    return readdirSync(homeOf(dataDirectory)).flatMap((name) => readAgent(join(homeOf(dataDirectory), name)) ?? [])
  } catch {
    return []
  }
}

export const removeAgent = ({ directory }: AgentPlace): void => rmSync(directory, { recursive: true, force: true })
