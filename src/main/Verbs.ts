// The list of verbs: one line each, with the summary for `echs --help` and the file that implements it. Nothing is
// loaded before its verb runs: `echs --help` reads this list, `echs ls` loads the client and no more.
import type { Verb, VerbEntry } from "../cli/Verb.ts"
import type { VerbParts } from "./VerbParts.ts"

export interface Start {
  /** The file that was started, to start it again. */
  readonly launcher: string
}

/** What a verb's file exports. It declares the parts it needs; all of them come from `VerbParts.ts`. */
export interface VerbModule {
  readonly make: (parts: VerbParts) => Verb
}

type Line = readonly [name: string, summary: string, file: () => Promise<VerbModule>]

const lines: ReadonlyArray<Line> = [
  ["demo", "show what ECHS does, in a few seconds: no key, no network", () => import("../cli/verbs/demo.ts")],
  ["serve", "run the server on a data directory until it is stopped", () => import("./ServeVerb.ts")],
  ["server", "start, stop or show the server in the background", () => import("../cli/verbs/server.ts")],
  ["open", "show the page of the server in the browser", () => import("../cli/verbs/open.ts")],
  ["goal", "submit a goal to the server and follow it", () => import("../cli/verbs/goal.ts")],
  ["plan", "show, approve, reject or cancel the plan of a goal", () => import("../cli/verbs/plan.ts")],
  ["task", "change single tasks of a goal, or speak to their workers", () => import("../cli/verbs/task.ts")],
  ["chat", "chat with an agent at the terminal", () => import("../cli/verbs/chat.ts")],
  ["run", "run claude, codex or any program under ECHS", () => import("./RunVerb.ts")],
  ["attach", "show the terminal of an outside agent", () => import("./AttachVerb.ts")],
  ["peek", "show what an agent is doing, without asking a model", () => import("../cli/verbs/peek.ts")],
  ["send", "send a message to an agent", () => import("../cli/verbs/send.ts")],
  ["steer", "send a message into the turn that is running", () => import("../cli/verbs/steer.ts")],
  ["tail", "follow a conversation rune by rune", () => import("../cli/verbs/tail.ts")],
  ["ls", "list conversations, newest first", () => import("../cli/verbs/ls.ts")],
  ["show", "summarize a conversation", () => import("../cli/verbs/show.ts")],
  ["inbox", "answer everything that waits for you", () => import("../cli/verbs/inbox.ts")],
  ["approve", "allow a tool call that waits for a decision", () => import("../cli/verbs/approve.ts")],
  ["deny", "refuse a tool call that waits for a decision", () => import("../cli/verbs/deny.ts")],
  ["interrupt", "end the turn that is running", () => import("../cli/verbs/interrupt.ts")],
  ["pause", "pause a conversation: it starts nothing new", () => import("../cli/verbs/pause.ts")],
  ["resume", "resume a paused or suspended conversation", () => import("../cli/verbs/resume.ts")],
  ["retry", "retry a failed turn, tool call or hook", () => import("../cli/verbs/retry.ts")],
  ["budget", "set what a conversation or an agent may use", () => import("../cli/verbs/budget.ts")],
  ["agents", "list, start, message or end agents", () => import("../cli/verbs/agents.ts")],
  ["close", "close a conversation", () => import("../cli/verbs/close.ts")],
  ["archive", "move a closed conversation into the archive", () => import("../cli/verbs/archive.ts")],
  ["restore", "bring a conversation back from the archive", () => import("../cli/verbs/restore.ts")],
  ["undo", "bring back files that a turn changed", () => import("../cli/verbs/undo.ts")],
  ["fork", "copy a conversation, up to an event, into a new one", () => import("../cli/verbs/fork.ts")],
  ["replay", "print the state of a conversation after any event", () => import("../cli/verbs/replay.ts")],
  ["verify", "check a whole data directory for damage", () => import("../cli/verbs/verify.ts")],
  [
    "repair",
    "repair a damaged data directory, keeping a copy of what is removed",
    () => import("../cli/verbs/repair.ts")
  ],
  ["export", "print a conversation as JSON lines", () => import("../cli/verbs/export.ts")],
  ["stats", "print figures of the server or of a conversation", () => import("../cli/verbs/stats.ts")],
  ["audit", "list who allowed what, when and why", () => import("../cli/verbs/audit.ts")],
  ["policy", "validate a policy file, or test it on past tool calls", () => import("../cli/verbs/policy.ts")],
  ["doctor", "check what is installed and configured", () => import("../cli/verbs/doctor.ts")],
  ["hooks", "show the hooks of a directory, and trust them", () => import("./HooksVerb.ts")],
  ["token", "show where the access token is; create and remove named tokens", () => import("../cli/verbs/token.ts")],
  ["login", "store the key of a model provider", () => import("../cli/verbs/login.ts")],
  ["models", "list the models that could answer, and what they cost", () => import("../cli/verbs/models.ts")],
  ["config", "print, set or remove settings", () => import("../cli/verbs/config.ts")],
  ["bench", "measure a running server from here", () => import("../cli/verbs/bench.ts")],
  ["completions", "print a completion script for bash, zsh or fish", () => import("../cli/verbs/completions.ts")]
]

export const verbs = (start: Start): ReadonlyArray<VerbEntry> =>
  lines.map(([name, summary, file]) => ({
    name,
    summary,
    load: async () => {
      const [{ make }, { makeVerbParts }] = await Promise.all([file(), import("./VerbParts.ts")])
      return make(makeVerbParts({ launcher: start.launcher, verbs: () => verbs(start) }))
    }
  }))
