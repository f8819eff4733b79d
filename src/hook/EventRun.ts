// Runs the hooks of one event, one after the other, and puts together what they decided. The strictest word counts.
import type { AgentId } from "../rune/Ids.ts"
import { type Decision, decisionOf } from "./Decision.ts"
import type { EventHook, HookScene } from "./Definition.ts"
import { type ProgramOptions, placeEnvironment, runProgram } from "./Program.ts"

export interface EventRequest {
  readonly state: HookScene
  readonly agentId: AgentId | null
  readonly workspace: string
  readonly told: Readonly<Record<string, unknown>>
  readonly signal: AbortSignal
}

export interface HookWord extends Decision {
  readonly hook: string
  readonly exit_code?: number
  readonly output: string
  /** It was not asked: it could not be started, or its time was over. */
  readonly silent?: string
}

/** One command for one event. */
export const runEventHook = async (
  options: ProgramOptions,
  hook: EventHook,
  request: EventRequest
): Promise<HookWord> => {
  const deadline = AbortSignal.timeout(hook.timeoutMs)
  try {
    const ended = await runProgram(options, {
      name: hook.name,
      argv: ["/bin/sh", "-c", hook.command],
      reach: hook.reach,
      workspace: request.workspace,
      told: request.told,
      environment: placeEnvironment(request.state, request.agentId),
      signal: AbortSignal.any([deadline, request.signal])
    })
    const output = ended.output
    if (deadline.aborted) return { hook: hook.name, output, silent: `it did not end within ${hook.timeoutMs} ms` }
    const code = ended.exit_code === null ? {} : { exit_code: ended.exit_code }
    return { hook: hook.name, output, ...code, ...decisionOf(ended) }
  } catch (error) {
    return { hook: hook.name, output: "", silent: error instanceof Error ? error.message : String(error) }
  }
}

/** All of them; one that blocks or stops has the last word. */
export const runEventHooks = async (
  options: ProgramOptions,
  hooks: ReadonlyArray<EventHook>,
  request: EventRequest
): Promise<ReadonlyArray<HookWord>> => {
  const words: Array<HookWord> = []
  for (const hook of hooks) {
    if (request.signal.aborted) break
    const word = await runEventHook(options, hook, request)
    words.push(word)
    if (word.block !== undefined || word.stop !== undefined) break
  }
  return words
}

/** What the model is to read of it; for some events all that was printed. */
export const contextOf = (
  words: ReadonlyArray<HookWord>,
  { withPrinted }: { readonly withPrinted: boolean }
): string | undefined => {
  const parts = words.flatMap(({ context, printed }) => context ?? (withPrinted ? (printed ?? []) : []))
  return parts.length === 0 ? undefined : parts.join("\n")
}
