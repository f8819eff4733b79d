// What runs commands of agents: where they can read and write, whether they reach the network, and how much they may
// use. The level says honestly what holds them; where nothing does, `contained` is false and people are asked.

/**
 * Best first: namespaces with a system call filter; namespaces without one; namespaces, but with the user id of root;
 * limits only; nothing.
 */
export type SandboxLevel = "bubblewrap" | "bubblewrap_no_seccomp" | "bubblewrap_as_root" | "limits_only" | "none"

export interface SandboxRequest {
  readonly argv: ReadonlyArray<string>
  /** Where it starts. */
  readonly directory: string
  /** What it may write to, besides a private temporary directory and a private home. */
  readonly writable: ReadonlyArray<string>
  /** What it finds besides, wherever it lies, and may not change. */
  readonly readable?: ReadonlyArray<string>
  readonly network: boolean
  /** Only git runs, and starts nothing of the repository: it reaches that also where it lies outside of the roots. */
  readonly gitAlone?: boolean
  /** All it finds in its environment. */
  readonly environment: Readonly<Record<string, string>>
  /** The first file descriptor the sandbox may use for itself; the ones below belong to the command. */
  readonly firstDescriptor?: number
}

/** A command line ready to be started; the sandbox is part of it. */
export interface SandboxedCommand {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly directory: string
  /** Of the first program alone, which may be the sandbox itself: never what the request asked for. */
  readonly environment: Readonly<Record<string, string>>
  /** What the sandbox reads from file descriptors, from `firstDescriptor` on, after its gate. */
  readonly descriptors: ReadonlyArray<Uint8Array>
  /** What has to happen before the program begins; without one it begins at once. */
  readonly gate?: Gate
  /** Which files lie behind the places of the sandbox: another answer means that it would be another sandbox. */
  readonly files: string
  /** Whether all it starts lives in a process namespace that ends with its first process. */
  readonly isNamespace: boolean
}

/** Where a sandbox that was made waits for its program to be let in. */
export interface Gate {
  /** The file descriptor, in both directions: the sandbox says how it stands, and is told to go on. */
  readonly descriptor: number
  /** How what is mounted inside differs from the plan; undefined when it does not. The process is its first outside. */
  readonly difference: (pid: number) => string | undefined
}

/** A limit that is in force for every command. */
export interface LimitInForce {
  readonly name: string
  readonly value: number
  /** Where it holds: in one process, in one file, in all of the sandbox. */
  readonly per: "process" | "file" | "sandbox"
}

export interface SandboxPort {
  readonly level: SandboxLevel
  /** The operating system keeps commands inside their roots. When it does not, every effect has to be asked about. */
  readonly contained: boolean
  /** What it is made of, or why it is not better, for people. */
  readonly detail: string
  readonly limits: ReadonlyArray<LimitInForce>
  /** Throws SandboxRefused when the request cannot be held. */
  readonly prepare: (request: SandboxRequest) => SandboxedCommand
}
