// The port of outside agents: what an adapter knows about one program, and how it turns the signals of a running one into
// normalized events. Adapters normalize, coalesce and drop doubles; the monitor only folds what they say. No I/O here.
import type { AgentEvent } from "../rune/AgentEvent.ts"

export interface Capabilities {
  /** A person may change the arguments of a call. */
  readonly edit: boolean
  readonly question: boolean
  readonly plan: boolean
  /** Input is taken while the agent works. */
  readonly steer: boolean
  /** A question outlives the process. */
  readonly durableWait: boolean
  /** States are told by the program and not guessed. */
  readonly exactStates: boolean
}

/** What a program is started with, beside what the person asked for. */
export interface LaunchPlan {
  readonly command: string
  readonly prependArgs: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  /** Files to write in the directory of the agent, by name; executable where it says so. */
  readonly files: ReadonlyArray<{ readonly name: string; readonly text: string; readonly executable?: true }>
}

export interface LaunchRequest {
  /** The directory of this agent, for files and the spool. */
  readonly directory: string
  readonly serverUrl: string
  /** Lets the program of this agent, and nobody else, report as it. */
  readonly token: string
  readonly command: ReadonlyArray<string>
}

/** What a program says of itself through its terminal (OSC 7501), or what its silence says. */
export interface ProgramStatus {
  readonly state: "idle" | "working" | "done" | "blocked"
  readonly source: "osc" | "silence"
}

/** One record of telemetry, flattened. */
export interface TelemetryRecord {
  readonly name: string
  readonly sessionId: string | undefined
  readonly sequence: number | undefined
  readonly attributes: Readonly<Record<string, string | number | boolean>>
}

/** A call that the agent asks a person about. */
export interface Question {
  readonly callId: string
  readonly toolName: string
  readonly input: Readonly<Record<string, unknown>>
  readonly title: string
  readonly suggestions: ReadonlyArray<unknown>
  /** The sub-agent that asks, where it is one. */
  readonly subAgent?: string
}

/** How a call that was asked about ended, as the agent showed it. */
export interface Settled {
  readonly callId: string
  readonly outcome: "ran" | "failed" | "not_run" | "started"
  readonly durationMs: number
  readonly output?: string
}

/** What a person, or the agent's own dialog, said to a call. */
export type Decision =
  | { readonly _tag: "Allow"; readonly updatedInput?: unknown }
  | { readonly _tag: "Deny"; readonly message: string }
  /** It is settled elsewhere, or nobody says anything. */
  | { readonly _tag: "Unsaid" }

/** What one signal means. */
export interface Heard {
  readonly events: ReadonlyArray<AgentEvent>
  readonly settled?: ReadonlyArray<Settled>
  readonly question?: Question
  /** The session of the program, once it is known. */
  readonly session?: { readonly ref: string; readonly transcript?: string }
  /** Messages for the program, in the order in which they are sent. */
  readonly replies?: ReadonlyArray<unknown>
  /** It could not be written down. */
  readonly isUnwritten?: boolean
  /** The signal was not understood, and why. */
  readonly ignored?: string
}

/** Turns the signals of one running program into events. Plain state, no I/O. */
export interface HarnessSession {
  /** A hook of the program. The body is whatever came. */
  readonly hook: (name: string, body: unknown) => Heard
  readonly telemetry: (records: ReadonlyArray<TelemetryRecord>) => Heard
  /** What the terminal says, after it stood for the debounce time. */
  readonly status: (status: ProgramStatus) => Heard
  /** A call that was asked about is decided on our side. */
  readonly decided: (callId: string) => Heard
  /** The turn ended and no signal said so. */
  readonly interrupted: () => Heard
  /** Whether, as far as is known, something is under way. */
  readonly isBusy: () => boolean
}

/** A session with a program that takes and sends messages, beside whatever its terminal shows. */
export interface ProtocolSession extends HarnessSession {
  /** What is said first on a new connection. */
  readonly greeting: () => ReadonlyArray<unknown>
  readonly message: (value: unknown) => Heard
  /** The messages that hand over a text; nothing while the program cannot take one. */
  readonly input: (text: string) => ReadonlyArray<unknown> | undefined
  /** The messages that end what it does. */
  readonly interrupt: () => ReadonlyArray<unknown>
  /** The messages that answer a question. */
  readonly answer: (callId: string, decision: Decision) => ReadonlyArray<unknown>
}

/** What is known of an agent before it is heard: another life of the server may have watched it. */
export interface Found {
  readonly isBusy: boolean
  /** Tokens that are on record already. */
  readonly counted: { readonly input: number; readonly output: number; readonly cached: number }
}

export const nothingFound: Found = { isBusy: false, counted: { input: 0, output: 0, cached: 0 } }

export interface HarnessAdapter {
  readonly name: string
  readonly capabilities: Capabilities
  /** Versions that were tried; others are warned about. */
  readonly versions: ReadonlyArray<string>
  readonly prepareForLaunch: (request: LaunchRequest) => LaunchPlan
  /** A session that begins, or one that another life of the server has watched. */
  readonly open: (found: Found) => HarnessSession
  /** The same over messages, where the program was started with an address to be reached at. */
  readonly connect?: (found: Found) => ProtocolSession
  /** Text as it is typed, and the key that ends what the agent does. */
  readonly typed: (text: string) => ReadonlyArray<string>
  readonly interruptKey: string
}

export const nothingHeard: Heard = { events: [] }
