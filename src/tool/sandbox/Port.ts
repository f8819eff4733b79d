// What runs commands of agents: where they can read and write, whether they reach the network, and how much they may
// use. The level says honestly what holds them.

/** Best first: namespaces with a system call filter; namespaces without; limits and checks only; nothing. */
export type SandboxLevel = "bubblewrap" | "bubblewrap_no_seccomp" | "limits_only" | "none"

export interface SandboxRequest {
  readonly argv: ReadonlyArray<string>
  /** Where it starts. */
  readonly directory: string
  /** What it may write to, besides a private temporary directory. */
  readonly writable: ReadonlyArray<string>
  readonly network: boolean
  /** All it finds in its environment. */
  readonly environment: Readonly<Record<string, string>>
}

/** A command line ready to be started; the sandbox is part of it. */
export interface SandboxedCommand {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly directory: string
  readonly environment: Readonly<Record<string, string>>
  /** Extra file descriptors to hand over, from 3 on: path of a file to open for reading. */
  readonly descriptors?: ReadonlyArray<string>
}

export interface SandboxPort {
  readonly level: SandboxLevel
  /** Why it is not better, for people. */
  readonly detail: string
  readonly prepare: (request: SandboxRequest) => SandboxedCommand
}
