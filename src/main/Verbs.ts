// Every verb of the command, with the parts it works with. Nothing is loaded before its verb runs: `echs --help` knows
// names and summaries, `echs ls` and `echs tail` load the client and no more.

import type { VerbEntry } from "../cli/Verb.ts"
import type { RecordParts } from "../cli/verbs/audit.ts"
import type { PolicyParts } from "../cli/verbs/policy.ts"
import type { SettingsParts } from "../cli/verbs/token.ts"
import type { VerifyReport } from "../cli/verbs/verify.ts"
import { dataDirectory, readEnvironment, readVersion } from "../config/Environment.ts"

export interface Start {
  /** The file that was started, to start it again. */
  readonly launcher: string
}

const local = () => import("../config/LocalServer.ts")
const act = () => import("../cli/verbs/approve.ts")
const agents = () => import("../cli/verbs/agents.ts")
const look = () => import("../cli/verbs/show.ts")
const talk = () => import("../cli/verbs/send.ts")
const record = () => import("../cli/verbs/audit.ts")
const settings = () => import("../cli/verbs/token.ts")

const entry = (name: string, summary: string, load: VerbEntry["load"]): VerbEntry => ({ name, summary, load })

/** What works in a conversation. */
const workVerbs = (): ReadonlyArray<VerbEntry> => [
  entry("retry", "tries a failed turn, call or hook again", async () => (await agents()).makeRetry(remoteParts())),
  entry("budget", "sets what a conversation or an agent may use", async () =>
    (await agents()).makeBudget(remoteParts())
  ),
  entry("agents", "lists, begins, tells and ends agents", async () => (await agents()).makeAgents(remoteParts()))
]

export const verbs = (start: Start): ReadonlyArray<VerbEntry> => [
  entry("demo", "shows in some seconds what ECHS does: no key, no network, nothing left behind", () => loadDemo(start)),
  entry("serve", "runs the server on a data directory until it is told to stop", loadServe),
  entry("goal", "hands a goal to the server and follows it", async () =>
    (await import("../cli/verbs/goal.ts")).makeGoal(remoteParts())
  ),
  entry("plan", "answers for a plan that waits, or stops it", async () =>
    (await import("../cli/verbs/goal.ts")).makePlan(remoteParts())
  ),
  entry("chat", "a conversation at the terminal", async () => (await talk()).makeChat(remoteParts())),
  entry("send", "says something to an agent", async () => (await talk()).makeSend(remoteParts())),
  entry("steer", "says something to an agent in the middle of its turn", async () =>
    (await talk()).makeSteer(remoteParts())
  ),
  entry("tail", "follows a conversation rune by rune", async () =>
    (await import("../cli/verbs/tail.ts")).makeTail(remoteParts())
  ),
  entry("ls", "lists conversations, newest first", async () => (await look()).makeLs(remoteParts())),
  entry("show", "sums up a conversation", async () => (await look()).makeShow(remoteParts())),
  entry("approve", "allows a call that waits for a decision", async () => (await act()).makeApprove(remoteParts())),
  entry("deny", "refuses a call that waits for a decision", async () => (await act()).makeDeny(remoteParts())),
  entry("interrupt", "ends the turn that runs", async () => (await act()).makeSimple(remoteParts(), "interrupt")),
  entry("pause", "lets a conversation start nothing new", async () => (await act()).makeSimple(remoteParts(), "pause")),
  entry("resume", "lets a paused or suspended conversation go on", async () => (await act()).makeResume(remoteParts())),
  ...workVerbs(),
  entry("close", "ends a conversation for good", async () => (await act()).makeSimple(remoteParts(), "close")),
  entry("archive", "moves a closed conversation into the archive", async () =>
    (await act()).makeSimple(remoteParts(), "archive")
  ),
  entry("restore", "brings a conversation back from the archive", async () =>
    (await act()).makeSimple(remoteParts(), "restore")
  ),
  entry("fork", "begins a new conversation as a copy up to an event", async () =>
    (await act()).makeFork(remoteParts())
  ),
  entry("replay", "prints the state of a conversation right after an event", async () =>
    (await record()).makeReplay(recordParts())
  ),
  entry("verify", "reads a whole data directory and says what is wrong with it, if anything", loadVerify),
  entry("repair", "cuts damaged logs back to what is good, and keeps a copy of the rest", loadRepair),
  entry("export", "prints a conversation as JSON lines", async () => (await look()).makeExport(remoteParts())),
  entry("stats", "numbers of the server or of a conversation", async () => (await look()).makeStats(remoteParts())),
  entry("audit", "lists who allowed what, when and why", async () => (await record()).makeAudit(remoteParts())),
  entry("policy", "checks a file of rules, and tries it on what is on record", async () =>
    (await import("../cli/verbs/policy.ts")).makePolicy(policyParts())
  ),
  entry("doctor", "says what is installed, what is set and what is wrong", async () =>
    (await settings()).makeDoctor(await settingsParts())
  ),
  entry("hooks", "shows the hooks of a directory, and trusts them", async () =>
    (await import("./HooksVerb.ts")).makeHooksVerb({
      dataDirectory: (flag) => dataDirectory(readEnvironment(), flag),
      workingDirectory: () => process.cwd(),
      nowMs: () => Date.now()
    })
  ),
  entry("token", "says where the token is; makes tokens for others", async () =>
    (await settings()).makeToken(await settingsParts())
  ),
  entry("config", "prints every setting, its value and where it came from", async () =>
    (await settings()).makeConfig(await settingsParts())
  ),
  entry("bench", "measures a running server from here", async () =>
    (await import("../cli/verbs/bench.ts")).makeBench(remoteParts())
  ),
  entry("completions", "prints a completion script for bash, zsh or fish", async () =>
    (await import("../cli/verbs/completions.ts")).makeCompletions(() => verbs(start))
  )
]

const loadServe: VerbEntry["load"] = async () => {
  const { makeServe } = await import("./ServeVerb.ts")
  return makeServe({ environment: readEnvironment(), version: readVersion() })
}

const loadVerify: VerbEntry["load"] = async () => {
  const { makeVerify } = await import("../cli/verbs/verify.ts")
  return makeVerify({ dataDirectory: (flag) => dataDirectory(readEnvironment(), flag), verify: verifyDirectory })
}

const loadRepair: VerbEntry["load"] = async () => {
  const [{ makeRepair }, { repairData }] = await Promise.all([
    import("../cli/verbs/repair.ts"),
    import("./RepairData.ts")
  ])
  const directory = (flag: string | undefined): string => dataDirectory(readEnvironment(), flag)
  return makeRepair({ dataDirectory: directory, verify: verifyDirectory, repair: repairData })
}

const loadDemo = async (start: Start) => {
  const { makeDemo } = await import("../cli/verbs/demo.ts")
  const { readServerInfo, readToken } = await local()
  return makeDemo({
    command: [process.execPath, start.launcher],
    environment: readEnvironment().variables,
    version: readVersion(),
    verify: verifyDirectory,
    endpoint: async (data) => {
      const info = readServerInfo(data)
      const token = readToken(data)
      return info === undefined || token === undefined ? undefined : { url: info.url, token }
    }
  })
}

const remoteParts = () => ({
  version: readVersion(),
  workingDirectory: () => process.cwd(),
  readFile: async (path: string) => (await import("../config/AttachedFiles.ts")).readAttachedFile(path),
  endpoint: async (flags: { readonly data?: string; readonly url?: string }) => {
    const { readServerInfo, readToken } = await local()
    const environment = readEnvironment()
    const directory = dataDirectory(environment, flags.data)
    const url = flags.url ?? readServerInfo(directory)?.url
    const token = environment.variables["ECHS_TOKEN"] || readToken(directory)
    return url === undefined ? undefined : { url, ...(token === undefined ? {} : { token }) }
  }
})

const recordParts = (): RecordParts => ({
  ...remoteParts(),
  fold: async (conversationId, runes) => {
    const [{ fold }, { decodeValue }, Result] = await Promise.all([
      import("../machine/evolve/Evolve.ts"),
      import("../rune/Rune.ts"),
      import("effect/Result")
    ])
    const decoded = runes.map((rune) => Result.getOrThrow(decodeValue(rune)))
    return fold(decoded, conversationId as Parameters<typeof fold>[1])
  }
})

const policyParts = (): PolicyParts => ({
  ...remoteParts(),
  readPolicy: async (path) => {
    const [{ knownTools, PolicyReplay, readPolicyFile }, { decodeValue }, { readTextFile }, Result] = await Promise.all(
      [
        import("./KnownTools.ts"),
        import("../rune/Rune.ts"),
        import("../config/ServerFiles.ts"),
        import("effect/Result")
      ]
    )
    try {
      const policy = readPolicyFile(await readTextFile(path))
      const tools = knownTools()
      return {
        rules: policy.rules.length + policy.learnt.length,
        mode: policy.mode ?? null,
        replay: (conversationId) => {
          const replay = new PolicyReplay(conversationId, policy, tools)
          return {
            add: (rune) => replay.add(Result.getOrThrow(decodeValue(rune))),
            finish: () => replay.finish()
          }
        }
      }
    } catch (error) {
      return { issue: (error as Error).message }
    }
  }
})

const settingsParts = async (): Promise<SettingsParts> => {
  const [explained, { SettingInvalid }, tokens] = await Promise.all([
    import("../config/Explain.ts"),
    import("../config/Settings.ts"),
    local()
  ])
  const environment = readEnvironment()
  const directory = (flag: string | undefined): string => dataDirectory(environment, flag)
  return {
    settings: (flag) => ({
      config_path: explained.configPath(directory(flag)),
      items: explained.explainSettings(environment, flag)
    }),
    expected: (error) => (error instanceof SettingInvalid ? error.message : undefined),
    tokens: (flag) => ({
      path: tokens.tokenPath(directory(flag)),
      exists: tokens.readToken(directory(flag)) !== undefined,
      named_path: explained.configPath(directory(flag)),
      named: tokens.readNamedTokens(directory(flag))
    }),
    createToken: (flag, name, role) => tokens.createNamedToken(directory(flag), name, role),
    removeToken: (flag, name) => tokens.removeNamedToken(directory(flag), name),
    examine: async (flag) => {
      const { examine } = await import("./Doctor.ts")
      return examine({ environment, version: readVersion(), verify: verifyDirectory }, flag)
    }
  }
}

const verifyDirectory = async (directory: string): Promise<VerifyReport | "missing"> => {
  const [{ verifyData }, { DataMissing }] = await Promise.all([
    import("./VerifyData.ts"),
    import("#runelog/RunelogErrors.ts")
  ])
  try {
    return await verifyData(directory)
  } catch (error) {
    if (error instanceof DataMissing) return "missing"
    throw error
  }
}
