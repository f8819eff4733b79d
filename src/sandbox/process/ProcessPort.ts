// Running a program to its end: the whole tree of processes ends with it, output is passed on as it comes and kept with
// a cap, and memory stays bounded however much it prints.

export type OutputStream = "stdout" | "stderr"

export interface ProcessRequest {
  readonly argv: ReadonlyArray<string>
  readonly directory: string
  /** What it may write to. */
  readonly writable: ReadonlyArray<string>
  /** What it may read besides, where homes and temporary directories are hidden. */
  readonly readable?: ReadonlyArray<string>
  readonly network: boolean
  /** Only git runs, and starts nothing of the repository: it reaches that also where it lies outside. */
  readonly gitAlone?: boolean
  /** Added to the allowed environment. */
  readonly environment?: Readonly<Record<string, string>>
  readonly stdin?: string
  /** Inline output that is kept, half of it from the beginning and half from the end. */
  readonly outputCharsMax: number
  readonly signal: AbortSignal
  /** When this is over the whole tree is ended, and the end says `timeout`. */
  readonly timeoutMs?: number
  /** Output as it comes, in pieces; what comes faster than people read is left out, with a note. */
  readonly onOutput?: (stream: OutputStream, text: string) => void
}

/** Why it is over: it ended by itself, or was ended because of this. */
export type ProcessEnd = "exited" | "killed" | "aborted" | "timeout" | "disk_reserve"

export interface ProcessEnded {
  readonly end: ProcessEnd
  readonly exit_code: number | null
  readonly signal: string | null
  readonly aborted: boolean
  readonly stdout: string
  readonly stderr: string
  /** Both, in the order in which they came. */
  readonly output: string
  /**
   * All it printed, when that was more than is kept inline: a file to be moved into a blob, and then removed. Bytes
   * over the limit of such a file were read and dropped.
   */
  readonly overflow?: { readonly path: string; readonly bytes: number; readonly droppedBytes: number }
}

export interface StartRequest {
  readonly argv: ReadonlyArray<string>
  readonly directory: string
  readonly writable: ReadonlyArray<string>
  readonly readable?: ReadonlyArray<string>
  readonly network: boolean
  readonly gitAlone?: boolean
  readonly environment?: Readonly<Record<string, string>>
  /** Pipes on descriptors from 3 on: `in` is read by the program, `out` is written by it. */
  readonly channels?: ReadonlyArray<"in" | "out">
  readonly onOutput: (stream: OutputStream | number, bytes: Buffer) => void
}

/** A program that lives until it ends or is ended: a shell session, an MCP server. */
export interface RunningProcess {
  readonly pid: number
  /** Resolves when the bytes are handed over, false when the program no longer reads. */
  readonly write: (text: string | Uint8Array, channel?: number) => Promise<boolean>
  /** Ends its standard input. */
  readonly endInput: () => void
  /** Holds output back, and lets it come again. */
  readonly pause: () => void
  readonly resume: () => void
  /** The processes of its tree that are alive now. */
  readonly processes: () => ReadonlyArray<{ readonly pid: number; readonly command: string }>
  /** Asks the whole tree to end, and makes it after a second; resolves when nothing is left. */
  readonly kill: () => Promise<void>
  /** Resolves when it is over and nothing of its tree is left. */
  readonly ended: Promise<{ readonly exit_code: number | null; readonly signal: string | null }>
}

export interface ProcessPort {
  /** Rejects with ProcessNotStarted or SandboxRefused when the program could not be started at all. */
  readonly run: (request: ProcessRequest) => Promise<ProcessEnded>
  readonly start: (request: StartRequest) => Promise<RunningProcess>
  /** Ends everything that still runs. */
  readonly close: () => Promise<void>
}
