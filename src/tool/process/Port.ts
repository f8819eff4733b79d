// Running a program to its end: the whole tree of processes ends with it, output is passed on as it comes and kept with
// a cap, and memory stays bounded however much it prints.

export interface ProcessRequest {
  readonly argv: ReadonlyArray<string>
  readonly directory: string
  readonly writable: ReadonlyArray<string>
  readonly network: boolean
  /** Added to the allowed environment. */
  readonly environment?: Readonly<Record<string, string>>
  readonly stdin?: string
  /** Inline output that is kept, head and tail. */
  readonly outputCharsMax: number
  readonly signal: AbortSignal
  readonly onOutput?: (stream: "stdout" | "stderr", text: string) => void
}

export interface ProcessEnded {
  readonly exit_code: number | null
  readonly signal: string | null
  readonly aborted: boolean
  readonly stdout: string
  readonly stderr: string
  /** Both, in the order in which they came. */
  readonly output: string
  /** All it printed, when that was more than is kept inline: a file to be moved into a blob, and then removed. */
  readonly overflow?: { readonly path: string; readonly bytes: number }
}

export interface ProcessPort {
  /** Rejects only when the program could not be started at all. */
  readonly run: (request: ProcessRequest) => Promise<ProcessEnded>
}
