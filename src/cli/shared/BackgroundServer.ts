// A server in the background, as `server start` and the verbs that start one where none runs see it.

export interface ServerInfo {
  readonly url: string
  readonly pid: number
  readonly started_ms: number
  readonly version: string
}

export type ServerStart =
  | { readonly _tag: "Running"; readonly info: ServerInfo; readonly isNew: boolean }
  | { readonly _tag: "Failed"; readonly reason: string }

/** Starting a server where none runs, as `server start` and `chat` do. */
export interface StartServerParts {
  /** Starts a server in the background unless one runs on the data directory. */
  readonly startServer: (data: string | undefined, args: ReadonlyArray<string>) => Promise<ServerStart>
}

/** How long a server in the background stays without clients and without work. */
export const defaultIdle = "2h"

export const idleArgs = (idle: string | undefined): ReadonlyArray<string> =>
  idle === "never" ? [] : ["--idle-exit", idle ?? defaultIdle]
