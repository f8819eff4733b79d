// The programs that are known, by the name that `echs run` takes. Everything else runs under generic rules.
import { claudeLaunch } from "./claude/ClaudeLaunch.ts"
import { ClaudeSession } from "./claude/ClaudeSession.ts"
import { codexLaunch } from "./codex/CodexLaunch.ts"
import { CodexSession } from "./codex/CodexSession.ts"
import { GenericSession } from "./generic/GenericSession.ts"
import type { Capabilities, HarnessAdapter, LaunchPlan, LaunchRequest } from "./Port.ts"

const watchedOnly: Capabilities = {
  edit: false,
  question: false,
  plan: false,
  steer: false,
  durableWait: false,
  exactStates: false
}

const unchanged = ({ command }: LaunchRequest): LaunchPlan => ({
  command: command[0] ?? "",
  prependArgs: [],
  env: {},
  files: []
})

const claude: HarnessAdapter = {
  name: "claude",
  capabilities: { edit: true, question: true, plan: false, steer: true, durableWait: false, exactStates: true },
  versions: ["2.1.325"],
  prepareForLaunch: claudeLaunch,
  open: (found) => new ClaudeSession(found),
  // Pasted text is taken as it is; the key that submits it must come apart from it.
  typed: (text) => [`\u001b[200~${text.replaceAll("\u001b", "")}\u001b[201~`, "\r"],
  interruptKey: "\u001b"
}

/** Codex is followed through its app-server; without one, by what it says in its terminal. */
const codex: HarnessAdapter = {
  name: "codex",
  capabilities: { edit: false, question: false, plan: false, steer: true, durableWait: false, exactStates: true },
  versions: ["0.166.0"],
  prepareForLaunch: codexLaunch,
  open: () => new GenericSession(),
  connect: (found) => new CodexSession(found),
  typed: (text) => [text, "\r"],
  interruptKey: "\u001b"
}

const generic: HarnessAdapter = {
  name: "generic",
  capabilities: watchedOnly,
  versions: [],
  prepareForLaunch: unchanged,
  open: () => new GenericSession(),
  typed: (text) => [text, "\r"],
  interruptKey: "\u0003"
}

export const adapters: ReadonlyArray<HarnessAdapter> = [claude, codex, generic]

/** The adapter of this name; the generic one where there is none. */
export const adapterOf = (name: string): HarnessAdapter => adapters.find((one) => one.name === name) ?? generic
