// What was agreed about the shape of the project, as data: which entries stand at the top, who may import whom, who
// may touch the machine. A new folder or a new exception is a line here, with its reason.

export const topEntries: ReadonlySet<string> = new Set([
  ".ci",
  ".gitignore",
  ".npmrc",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "LICENSE",
  "README.md",
  "SECURITY.md",
  "biome.json",
  "docs",
  "package.json",
  "package-lock.json",
  "runelog",
  "schemas",
  "src",
  "test",
  "tsconfig.build.json",
  "tsconfig.json",
  "vitest.config.ts"
])

export const requiredTopEntries: ReadonlyArray<string> = [
  "package.json",
  "src",
  "runelog",
  "schemas",
  "test",
  "docs",
  "tsconfig.json",
  "README.md",
  "LICENSE",
  "CHANGELOG.md"
]

/** Where programs enter: the command, the exports of the package, and the server that others embed. */
export const entryPoints: ReadonlyArray<string> = [
  "src/cli/echs.js",
  "src/main.ts",
  "src/main/Embed.ts",
  "src/client/Client.ts",
  "src/dashboard/main.tsx",
  "runelog/Runelog.ts"
]

/** Areas that are plain code by decision: the log engine, the pure machines, the vocabulary, the client, the command and the page. */
export const plainAreas: ReadonlySet<string> = new Set([
  "runelog",
  "machine",
  "rune",
  "client",
  "cli",
  "present",
  "dashboard"
])

const ports = ["rune", "machine"]
const effects = ["store", "provider", "tool", "hook", "budget", "sandbox", "policy"]
const everything = "*"

/** Area of the source → the areas it may import. Its own files are always allowed. */
export const directions: Readonly<Record<string, ReadonlyArray<string>>> = {
  runelog: [],
  rune: [],
  supervise: [],
  config: [],
  machine: ["rune"],
  // A list says what the state says: its rows are folded by the machine.
  store: ["rune", "runelog", "machine", "contract"],
  provider: [...ports, "contract"],
  // Shapes that two areas share so that neither imports the other.
  contract: [...ports, "wire"],
  sandbox: [...ports, "contract"],
  policy: [...ports, "contract"],
  tool: [...ports, "sandbox", "policy", "contract"],
  hook: [...ports, "contract"],
  // The process of a holder passes its environment on to the program.
  harness: [...ports, "contract", "config"],
  budget: ports,
  prompt: [...ports, "tool", "sandbox", "policy", "contract"],
  turn: [...ports, ...effects, "contract", "prompt"],
  autonomy: [...ports, ...effects, "contract"],
  conversation: [...ports, ...effects, "contract", "prompt", "harness", "supervise", "turn", "autonomy"],
  attention: [...ports, "contract", "conversation"],
  wire: ["rune"],
  server: ["attention", "conversation", "rune", "wire", "contract"],
  client: ["rune", "wire"],
  // How things are shown, to whoever decides about them: written once for the terminal and the page.
  present: [],
  cli: ["client", "present"],
  dashboard: ["client", "present"],
  main: [everything]
}

export const mayImport = (from: string, to: string): boolean => {
  const allowed = directions[from] ?? []
  return from === to || allowed.includes(to) || allowed.includes(everything)
}

export interface Permission {
  /** What is reached, as one word for the message. */
  readonly reaches: string
  readonly modules: ReadonlyArray<string>
  /** Folders (ending in "/") and files that may import these modules. */
  readonly allowed: ReadonlyArray<string>
}

/** Files that set timers by hand, and why: docs/decisions/0026-timers.md. All others wait on Effect's clock. */
export const timerFiles: ReadonlyArray<string> = [
  // Run in browsers, or start without Effect.
  "src/cli/",
  "src/client/",
  "src/dashboard/",
  "src/harness/holder/",
  "runelog/Retry.ts",
  "src/contract/Timers.ts",
  "src/main.ts",
  "src/main/ServeVerb.ts",
  "src/server/telemetry/Watchdog.ts",
  "src/server/telemetry/WatchdogThread.ts",
  "src/turn/Coalescer.ts"
]

/** Builtins and packages that reach outside the process, or that one part alone should know. */
export const permissions: ReadonlyArray<Permission> = [
  {
    reaches: "files",
    modules: ["node:fs", "node:fs/promises"],
    allowed: [
      "runelog/disk/DescriptorReserve.ts",
      "runelog/disk/DiskNode.ts",
      "runelog/disk/NodeLock.ts",
      "src/config/",
      "src/tool/",
      "src/sandbox/",
      "src/policy/",
      "src/prompt/",
      "src/harness/",
      // Finds the bundled Node.
      "src/cli/echs.js",
      // Own a directory that is thrown away.
      "src/cli/demo/",
      "src/cli/verbs/demo.ts",
      "src/main/DoctorTools.ts",
      // The text in a person's editor.
      "src/main/EditText.ts",
      // Looks whether a program is there before it is started.
      "src/main/RunVerb.ts",
      // Opens the log of a server in the background.
      "src/main/BackgroundServer.ts",
      // A directory of its own, gone with the proof that is repeated.
      "src/main/VerifyGoal.ts",
      // Reads the page that the package brings.
      "src/main/PageFiles.ts",
      // Writes to standard error while the main thread cannot.
      "src/server/telemetry/WatchdogThread.ts"
    ]
  },
  {
    reaches: "processes",
    modules: ["node:child_process", "node:cluster", "node:worker_threads"],
    allowed: [
      "src/tool/",
      "src/sandbox/",
      "src/harness/",
      "src/cli/echs.js",
      "src/cli/demo/",
      "src/cli/verbs/demo.ts",
      "src/main/BackgroundServer.ts",
      "src/main/EditText.ts",
      // Ask programs for their versions.
      "src/main/Doctor.ts",
      // Opens the browser.
      "src/main/Browser.ts",
      // Bundles the page of a checkout.
      "src/main/PageFiles.ts",
      "src/main/RunVerb.ts",
      // A thread that watches the main one.
      "src/server/telemetry/Watchdog.ts",
      "src/server/telemetry/WatchdogThread.ts"
    ]
  },
  {
    reaches: "the debugger",
    modules: ["node:inspector"],
    allowed: ["src/server/telemetry/Watchdog.ts", "src/server/telemetry/WatchdogThread.ts"]
  },
  {
    reaches: "the network",
    modules: [
      "node:net",
      "node:http",
      "node:https",
      "node:http2",
      "node:tls",
      "node:dgram",
      "node:dns",
      "node:dns/promises",
      "ws"
    ],
    allowed: ["src/provider/", "src/harness/", "src/server/", "src/client/", "src/tool/builtin/fetch/"]
  },
  { reaches: "the lock of a data directory", modules: ["node:net"], allowed: ["runelog/disk/NodeLock.ts"] },
  { reaches: "a database", modules: ["node:sqlite"], allowed: ["src/store/"] },
  { reaches: "a checksum", modules: ["@node-rs/crc32"], allowed: ["runelog/Crc32c.ts"] },
  { reaches: "the check of arguments", modules: ["ajv"], allowed: ["src/tool/Arguments.ts"] },
  { reaches: "a browser's document", modules: ["preact", "@preact/signals"], allowed: ["src/dashboard/"] },
  {
    reaches: "a terminal",
    modules: ["@lydell/node-pty", "@xterm/headless", "@xterm/addon-serialize"],
    allowed: ["src/harness/holder/"]
  },
  { reaches: "a provider", modules: ["openai"], allowed: ["src/provider/openai/"] },
  { reaches: "a provider", modules: ["@anthropic-ai/sdk"], allowed: ["src/provider/anthropic/"] }
]

/** Packages that any part of the product may import, by their subpaths. */
export const freePackages: ReadonlyArray<string> = ["effect"]

/** Builtins that compute and do not reach outside. */
export const freeBuiltins: ReadonlySet<string> = new Set([
  "node:assert",
  "node:buffer",
  "node:crypto",
  "node:events",
  "node:module",
  "node:os",
  "node:path",
  "node:perf_hooks",
  "node:readline",
  "node:stream",
  "node:stream/promises",
  "node:string_decoder",
  "node:timers/promises",
  "node:url",
  "node:util",
  "node:v8",
  "node:zlib"
])

/** The only readers of the environment. */
export const environmentReaders: ReadonlyArray<string> = ["src/config/", "src/cli/echs.js"]

/** Parts that must give the same answer for the same input, always. */
export const deterministicAreas: ReadonlyArray<string> = ["src/machine/", "src/rune/"]

export const sizes = {
  fileLinesExplained: 500,
  fileLinesMax: 800,
  functionLinesMax: 70
} as const
