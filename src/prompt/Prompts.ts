// What an agent's model is told about where it works, made of the place as it is now and of what the agent knows: all of
// it before the first request, and later what has changed. Instruction files are content: nothing here changes a permission.
import { createHash } from "node:crypto"
import { realpath } from "node:fs/promises"
import * as Effect from "effect/Effect"
import type { AgentState, ConversationState } from "../machine/State.ts"
import { agentOf, workspaceOf } from "../machine/view/Select.ts"
import type { AgentId } from "../rune/Ids.ts"
import { type FilesWanted, findFiles, type InstructionFile } from "./Files.ts"
import type { GitState } from "./GitState.ts"
import { limits } from "./PromptLimits.ts"
import { knownParts, type PromptPort, type PromptRequest, type Told } from "./PromptPort.ts"
import { dateText, environmentText, filesText, noteText, type Place, promptText } from "./Text.ts"

export interface PromptsOptions {
  readonly place: Omit<Place, "workspace">
  /** The day as people here would write it. */
  readonly day: () => string
  readonly userFile: string | undefined
  /** Whether the files of projects are told. */
  readonly project: boolean
  readonly ownDirectories: ReadonlyArray<string>
  /** Paths that the agent's calls have touched, the newest first. */
  readonly touched: (agent: AgentState) => ReadonlyArray<string>
  /** Whether the policy lets the agent read a file of its workspace unasked. */
  readonly mayRead: (state: ConversationState, agentId: AgentId, path: string) => boolean
  readonly gitState: GitState
  /** Keeps secrets of the server out of it. */
  readonly mask?: (text: string) => string
  /** Told what should not have happened; the agent works without news then. */
  readonly onTrouble?: (error: unknown) => void
}

interface Piece {
  readonly name: string
  readonly text: string
  readonly sha256: string
}

const piece = (name: string, text: string): Piece => ({
  name,
  text,
  sha256: createHash("sha256").update(text).digest("hex")
})

/** Names of what is no file. */
const own: ReadonlySet<string> = new Set(["environment", "date", "git"])

const roomFor = (contextTokens: number): number => {
  const share = Math.floor(contextTokens * limits.contextShare * limits.charsPerToken)
  return Math.max(limits.filesCharsMin, Math.min(limits.filesCharsMax, share))
}

interface Found {
  readonly environment: ReadonlyArray<Piece>
  readonly files: ReadonlyArray<Piece>
  readonly isRepository: boolean
}

class Prompts implements PromptPort {
  private readonly options: PromptsOptions

  constructor(options: PromptsOptions) {
    this.options = options
  }

  readonly news = async (request: PromptRequest): Promise<Told | undefined> => {
    const agent = agentOf(request.state, request.agentId)
    if (agent === undefined) return undefined
    try {
      const found = await this.found(request, agent)
      const told = agent.prompt === null ? await this.beginning(request, found) : changes(request, agent, found)
      return told === undefined ? undefined : this.masked(told)
    } catch (error) {
      this.options.onTrouble?.(error)
      return undefined
    }
  }

  private masked({ parts, text }: Told): Told {
    const { mask = (said) => said } = this.options
    return { text: mask(text).toWellFormed(), parts }
  }

  private async found({ agentId, state }: PromptRequest, agent: AgentState): Promise<Found> {
    const { day, mayRead, ownDirectories, place, project, touched, userFile } = this.options
    const workspace = workspaceOf(state, agentId)
    const wanted: FilesWanted = {
      workspace,
      project,
      userFile,
      touched: touched(agent),
      known: [...knownParts(agent).keys()].filter((name) => !own.has(name)),
      mayRead: (path) => mayRead(state, agentId, path),
      ownDirectories
    }
    const { files, isRepository } = await findFiles(wanted)
    return {
      environment: [piece("environment", environmentText({ ...place, workspace })), piece("date", dateText(day()))],
      files: files.map(({ name, text }) => piece(name, text)),
      isRepository
    }
  }

  private async beginning({ agentId, contextTokens, signal, state }: PromptRequest, found: Found): Promise<Told> {
    const workspace = await realpath(workspaceOf(state, agentId) ?? "").catch(() => undefined)
    const git =
      found.isRepository && workspace !== undefined
        ? await Effect.runPromise(this.options.gitState(workspace), { signal }).catch(() => undefined)
        : undefined
    const environment = [...found.environment, ...(git === undefined ? [] : [piece("git", git)])]
    return {
      text: promptText({ environment: textsOf(environment), files: filesText(found.files, roomFor(contextTokens)) }),
      parts: partsOf([...environment, ...found.files])
    }
  }
}

const textsOf = (pieces: ReadonlyArray<Piece>): ReadonlyArray<string> => pieces.map(({ text }) => text)

const partsOf = (pieces: ReadonlyArray<Piece>): Told["parts"] => pieces.map(({ name, sha256 }) => ({ name, sha256 }))

const changes = ({ contextTokens }: PromptRequest, agent: AgentState, found: Found): Told | undefined => {
  const known = knownParts(agent)
  const isNew = ({ name, sha256 }: Piece): boolean => known.get(name) !== sha256
  const environment = found.environment.filter(isNew)
  const files = found.files.filter(isNew)
  const there = new Set(found.files.map(({ name }) => name))
  const gone = [...known].flatMap(([name, sha256]) =>
    sha256 === undefined || own.has(name) || there.has(name) ? [] : [name]
  )
  if (environment.length + files.length + gone.length === 0) return undefined
  const words: ReadonlyArray<InstructionFile> = files
  return {
    text: noteText({ environment: textsOf(environment), files: filesText(words, roomFor(contextTokens)), gone }),
    parts: [...partsOf([...environment, ...files]), ...gone.map((name) => ({ name }))]
  }
}

export const makePrompts = (options: PromptsOptions): PromptPort => new Prompts(options)
