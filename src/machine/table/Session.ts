/**
 * The life of a conversation: created, active, paused, suspended, closing, closed,
 * archived. Pausing is a person's wish, suspension is the server's; both refuse new
 * turns. An archived conversation answers to one command only: restore. One that is
 * closed is activated again by a new root.
 */
import type { Rune } from "../../rune/Rune.ts"
import { draft, type Writes, write } from "../decide/Drafts.ts"
import { type Machine, silent, type Table } from "./Table.ts"

export type SessionStatus = "created" | "active" | "paused" | "suspended" | "closing" | "closed" | "archived"

export type SessionCommand =
  | ({ readonly _tag: "Activate" } & Writes<"session.activated">)
  /** A turn starts or ends: allowed only while active, and writes nothing of its own. */
  | { readonly _tag: "AdmitTurn" }
  | { readonly _tag: "Pause"; readonly reason: string }
  | { readonly _tag: "Resume"; readonly reason?: string | undefined }
  | ({ readonly _tag: "Suspend" } & Writes<"session.suspended">)
  | { readonly _tag: "Unsuspend"; readonly reason?: string | undefined }
  | { readonly _tag: "Close"; readonly reason: string }
  | ({ readonly _tag: "FinishClosing" } & Writes<"session.closed">)
  | ({ readonly _tag: "Archive" } & Writes<"session.archived">)
  | ({ readonly _tag: "Restore" } & Writes<"session.restored">)
  | ({ readonly _tag: "Fork" } & Writes<"session.forked">)
  | ({ readonly _tag: "Configure" } & Writes<"config.updated">)

const because = (reason: string | undefined) => (reason === undefined ? {} : { reason })

const activate = { to: "active", runes: write("session.activated") } as const
const resume = {
  to: "active",
  runes: ({ reason }: { readonly reason?: string | undefined }) => [draft("session.resumed", because(reason))]
} as const
const unsuspend = {
  to: "active",
  runes: ({ reason }: { readonly reason?: string | undefined }) => [draft("session.unsuspended", because(reason))]
} as const
const pause = {
  to: "paused",
  runes: ({ reason }: { readonly reason: string }) => [draft("session.paused", { reason })]
} as const
const suspend = { to: "suspended", runes: write("session.suspended") } as const
const close = {
  to: "closing",
  runes: ({ reason }: { readonly reason: string }) => [draft("session.closing", { reason })]
} as const
const stays = <S extends SessionStatus>(to: S) => ({
  Fork: { to, runes: write("session.forked") },
  Configure: { to, runes: write("config.updated") }
})

const table: Table<SessionStatus, SessionCommand> = {
  created: {
    Activate: activate,
    AdmitTurn: "refuse",
    Pause: "refuse",
    Resume: "refuse",
    Suspend: "refuse",
    Unsuspend: "refuse",
    Close: close,
    FinishClosing: "refuse",
    Archive: "refuse",
    Restore: "refuse",
    Fork: stays("created").Fork,
    Configure: stays("created").Configure
  },
  active: {
    Activate: "refuse",
    AdmitTurn: { to: "active", runes: silent },
    Pause: pause,
    Resume: "refuse",
    Suspend: suspend,
    Unsuspend: "refuse",
    Close: close,
    FinishClosing: "refuse",
    Archive: "refuse",
    Restore: "refuse",
    Fork: stays("active").Fork,
    Configure: stays("active").Configure
  },
  paused: {
    Activate: "refuse",
    AdmitTurn: "refuse",
    Pause: "refuse",
    Resume: resume,
    Suspend: suspend,
    Unsuspend: "refuse",
    Close: close,
    FinishClosing: "refuse",
    Archive: "refuse",
    Restore: "refuse",
    Fork: stays("paused").Fork,
    Configure: stays("paused").Configure
  },
  suspended: {
    Activate: "refuse",
    AdmitTurn: "refuse",
    Pause: "refuse",
    Resume: "refuse",
    Suspend: "refuse",
    Unsuspend: unsuspend,
    Close: close,
    FinishClosing: "refuse",
    Archive: "refuse",
    Restore: "refuse",
    Fork: stays("suspended").Fork,
    Configure: stays("suspended").Configure
  },
  closing: {
    Activate: "refuse",
    AdmitTurn: "refuse",
    Pause: "refuse",
    Resume: "refuse",
    Suspend: "refuse",
    Unsuspend: "refuse",
    Close: "refuse",
    FinishClosing: { to: "closed", runes: write("session.closed") },
    Archive: "refuse",
    Restore: "refuse",
    Fork: "refuse",
    Configure: "refuse"
  },
  closed: {
    Activate: activate,
    AdmitTurn: "refuse",
    Pause: "refuse",
    Resume: "refuse",
    Suspend: "refuse",
    Unsuspend: "refuse",
    Close: "refuse",
    FinishClosing: "refuse",
    Archive: { to: "archived", runes: write("session.archived") },
    Restore: "refuse",
    Fork: "refuse",
    Configure: "refuse"
  },
  archived: {
    Activate: "refuse",
    AdmitTurn: "refuse",
    Pause: "refuse",
    Resume: "refuse",
    Suspend: "refuse",
    Unsuspend: "refuse",
    Close: "refuse",
    FinishClosing: "refuse",
    Archive: "refuse",
    Restore: { to: "closed", runes: write("session.restored") },
    Fork: "refuse",
    Configure: "refuse"
  }
}

export const session: Machine<SessionStatus, SessionCommand> = {
  name: "Session",
  initial: "created",
  terminal: ["archived"],
  table
}

/** Where a rune leaves the session. */
export const sessionLands = (from: SessionStatus, rune: Rune): SessionStatus => {
  switch (rune.kind) {
    case "session.created":
      return "created"
    case "session.activated":
    case "session.resumed":
    case "session.unsuspended":
      return "active"
    case "session.paused":
      return "paused"
    case "session.suspended":
      return "suspended"
    case "session.closing":
      return "closing"
    case "session.closed":
    case "session.restored":
      return "closed"
    case "session.archived":
      return "archived"
    default:
      return from
  }
}
