// What every command of the CLI looks like, and the exit codes they share. A verb is handed its arguments and its
// terminal and answers with an exit code; it neither reads `process` nor ends it.

export const exitCode = {
  done: 0,
  failed: 1,
  usage: 2,
  noServer: 3,
  notAuthorised: 4,
  notFound: 5,
  refusedByState: 6,
  interrupted: 130
} as const

/** The exit code of a program that a verb ran in its place. */
type ProgramExit = number & { readonly _exitOf: "program" }

export type ExitCode = (typeof exitCode)[keyof typeof exitCode] | ProgramExit

export const programExit = (code: number): ExitCode => code as ProgramExit

export type Tone = "strong" | "quiet" | "good" | "bad" | "notice" | "accent" | "model"

export interface Terminal {
  /** To standard output: the answer, and with `--json` nothing but the answer. */
  readonly write: (text: string) => void
  /** To standard error: what went wrong and how to go on. */
  readonly complain: (text: string) => void
  /** Colors the text where the terminal shows colors. */
  readonly paint: (tone: Tone, text: string) => string
  /** Asked for once a verb can stop in good order: from then on an interrupt aborts the signal instead of ending the process. */
  readonly interruption: () => AbortSignal
  /** Somebody looks at the output as it comes. */
  readonly isWatched: boolean
  /** Somebody can be asked. */
  readonly isAnswered: boolean
  readonly columns: () => number
  readonly rows: () => number
  /** A line of its own below the output, replaced by the next and gone with `undefined`; nothing where nobody looks. */
  readonly status: (text: string | undefined) => void
  /** Asks a question and waits for a line; undefined when there is none to come. */
  readonly ask: (question: string, signal: AbortSignal) => Promise<string | undefined>
  /** Takes over the keys of the terminal; undefined where nobody is at one. */
  readonly keyboard: () => Keyboard | undefined
  /** Resolves when what was written can take more. */
  readonly drained: () => Promise<void>
}

/** The keys of a terminal in raw mode. */
export interface Keyboard {
  readonly onInput: (listener: (text: string) => void) => void
  readonly onResize: (listener: () => void) => void
  /** Gives the terminal back as it was. */
  readonly release: () => void
  /** Takes it again after a release. */
  readonly take: () => void
}

export interface Verb {
  /** Shown by `echs <verb> --help`. */
  readonly usage: string
  /** What the verb takes, for shell completion. */
  readonly options?: ReadonlyArray<string>
  /** The arguments that are its own, where others belong to a program that it runs. */
  readonly own?: (args: ReadonlyArray<string>) => ReadonlyArray<string>
  readonly run: (args: ReadonlyArray<string>, terminal: Terminal) => Promise<ExitCode>
}

/** A verb is loaded only when it is asked for: `echs --help` must not pay for the engine. */
export interface VerbEntry {
  readonly name: string
  readonly summary: string
  readonly load: () => Promise<Verb>
}
