// What verbs work with, all in one object: each verb declares the members it needs. Every member loads its
// implementation on its first call, so that a verb pays only for what it uses.
import type { RemoteParts } from "../cli/Remote.ts"
import type { VerbEntry } from "../cli/Verb.ts"
import type { ChatParts } from "../cli/verbs/chat.ts"
import type { CompletionsParts } from "../cli/verbs/completions.ts"
import type { ConfigParts } from "../cli/verbs/config.ts"
import type { DemoParts } from "../cli/verbs/demo.ts"
import type { DoctorParts } from "../cli/verbs/doctor.ts"
import type { LoginParts } from "../cli/verbs/login.ts"
import type { ModelsParts } from "../cli/verbs/models.ts"
import type { OpenParts } from "../cli/verbs/open.ts"
import type { PolicyParts } from "../cli/verbs/policy.ts"
import type { RepairParts } from "../cli/verbs/repair.ts"
import type { ReplayParts } from "../cli/verbs/replay.ts"
import type { ServerVerbParts } from "../cli/verbs/server.ts"
import type { TokenParts } from "../cli/verbs/token.ts"
import type { VerifyParts, VerifyReport } from "../cli/verbs/verify.ts"
import { dataDirectory, readEnvironment, readVersion } from "../config/Environment.ts"
import type { HooksVerbParts } from "./HooksVerb.ts"
import type { RunParts } from "./RunVerb.ts"
import type { ServeParts } from "./ServeVerb.ts"

export type VerbParts = RemoteParts &
  ChatParts &
  ReplayParts &
  PolicyParts &
  OpenParts &
  ConfigParts &
  LoginParts &
  ModelsParts &
  TokenParts &
  DoctorParts &
  VerifyParts &
  RepairParts &
  DemoParts &
  HooksVerbParts &
  RunParts &
  ServeParts &
  ServerVerbParts &
  CompletionsParts

const localServer = () => import("../config/LocalServer.ts")

export const makeVerbParts = (start: {
  readonly launcher: string
  readonly verbs: () => ReadonlyArray<VerbEntry>
}): VerbParts => {
  const environment = readEnvironment()
  const version = readVersion()
  const directory = (flag: string | undefined): string => dataDirectory(environment, flag)
  return {
    version,
    environment,
    verbs: start.verbs,
    dataDirectory: directory,
    workingDirectory: () => process.cwd(),
    homeDirectory: environment.homeDirectory,
    chatFiles: async (flag, path) => {
      const [history, workspace, { editText }] = await Promise.all([
        import("../config/InputHistory.ts"),
        import("../config/WorkspaceFiles.ts"),
        import("./EditText.ts")
      ])
      const data = directory(flag)
      return {
        history: history.readInputHistory(data),
        remember: (text) => history.addToInputHistory(data, text),
        files: () => workspace.listFiles(path),
        editText: (text) => editText(text, environment.variables)
      }
    },
    branchOf: async (path) => (await import("../config/WorkspaceFiles.ts")).readBranch(path),
    nowMs: () => Date.now(),
    ...serverParts(directory),
    ...backgroundParts(directory, [process.execPath, start.launcher]),
    ...recordParts,
    ...settingsParts(directory),
    ...keyParts(directory),
    command: [process.execPath, start.launcher],
    variables: environment.variables,
    openBrowser: async (url) => (await import("./Browser.ts")).openBrowser(url, environment.variables),
    prepareDemo: async (workspace) => (await import("../config/DemoGoal.ts")).prepareDemo(workspace),
    verify: verifyDirectory,
    repeatProof: async (request) => (await import("./VerifyGoal.ts")).repeatProof(request, environment),
    repair: async (data, plan) => (await import("./RepairData.ts")).repairData(data, plan),
    examine: async (flag) => {
      const { examine } = await import("./Doctor.ts")
      return examine({ environment, version, verify: verifyDirectory }, flag)
    }
  }
}

type DirectoryOf = (flag: string | undefined) => string

const serverParts = (directory: DirectoryOf): Pick<VerbParts, "readFile" | "endpoint" | "localEndpoint"> => ({
  readFile: async (path) => (await import("../config/AttachedFiles.ts")).readAttachedFile(path),
  endpoint: async (flags) => {
    const { readServerInfo, readToken } = await localServer()
    const data = directory(flags.data)
    const url = flags.url ?? readServerInfo(data)?.url
    const token = readEnvironment().variables["ECHS_TOKEN"] || readToken(data)
    return url === undefined ? undefined : { url, ...(token === undefined ? {} : { token }) }
  },
  localEndpoint: async (data) => {
    const { readServerInfo, readToken } = await localServer()
    const info = readServerInfo(data)
    const token = readToken(data)
    return info === undefined || token === undefined ? undefined : { url: info.url, token }
  }
})

const backgroundParts = (
  directory: DirectoryOf,
  command: ReadonlyArray<string>
): Pick<VerbParts, "background" | "hasCrashed" | "isAlive" | "startServer"> => ({
  hasCrashed: async (flag) => (await localServer()).hasCrashed(directory(flag)),
  isAlive: async (pid) => (await localServer()).isAlive(pid),
  background: async (flag) => {
    const [{ readServerInfo }, { serverLogPath }] = await Promise.all([localServer(), import("./BackgroundServer.ts")])
    const data = directory(flag)
    return { data, log: serverLogPath(data), info: readServerInfo(data) }
  },
  startServer: async (flag, args) => {
    const { startBackground } = await import("./BackgroundServer.ts")
    const environment = readEnvironment().variables
    return startBackground({ command, dataDirectory: directory(flag), environment, args })
  }
})

const recordParts: Pick<VerbParts, "fold" | "readPolicy"> = {
  fold: async (conversationId, runes) => {
    const [{ fold }, { decodeValue }, Result] = await Promise.all([
      import("../machine/evolve/Evolve.ts"),
      import("../rune/Rune.ts"),
      import("effect/Result")
    ])
    const decoded = runes.map((rune) => Result.getOrThrow(decodeValue(rune)))
    return fold(decoded, conversationId as Parameters<typeof fold>[1])
  },
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
}

type SettingsMembers = "changeSetting" | "settings" | "settingsFailure" | "tokens" | "createToken" | "removeToken"

const settingsParts = (directory: DirectoryOf): Pick<VerbParts, SettingsMembers> => ({
  settings: async (flag) => {
    const { configPath, explainSettings } = await import("../config/Explain.ts")
    return { config_path: configPath(directory(flag)), items: explainSettings(readEnvironment(), flag) }
  },
  changeSetting: async (flag, name, value) => {
    const { changeSetting } = await import("../config/ChangeSetting.ts")
    changeSetting(readEnvironment(), directory(flag), name, value)
  },
  settingsFailure: async (error) => {
    const { SettingInvalid } = await import("../config/Settings.ts")
    return error instanceof SettingInvalid ? error.message : undefined
  },
  tokens: async (flag) => {
    const [{ configPath }, tokens] = await Promise.all([import("../config/Explain.ts"), localServer()])
    const data = directory(flag)
    return {
      path: tokens.tokenPath(data),
      exists: tokens.readToken(data) !== undefined,
      named_path: configPath(data),
      named: tokens.readNamedTokens(data)
    }
  },
  createToken: async (flag, name, role) => (await localServer()).createNamedToken(directory(flag), name, role),
  removeToken: async (flag, name) => (await localServer()).removeNamedToken(directory(flag), name)
})

type KeyMembers = "credentials" | "models" | "removeCredential" | "storeCredential"

const keyParts = (directory: DirectoryOf): Pick<VerbParts, KeyMembers> => {
  const stored = () => import("../config/Credentials.ts")
  return {
    credentials: async (flag) => {
      const { credentialsPath, readCredentials } = await stored()
      const data = directory(flag)
      const { variables } = readEnvironment()
      const inFile = Object.keys(readCredentials(data))
      const names = [...new Set(["ANTHROPIC_API_KEY", "OPENAI_API_KEY", ...inFile])]
      const items = names
        .filter((variable) => variables[variable] || inFile.includes(variable))
        .map((variable) => {
          const source = variables[variable] ? "environment" : "credentials.json"
          return { variable, source } as const
        })
      return { path: credentialsPath(data), items }
    },
    storeCredential: async (flag, variable, key) => (await stored()).storeCredential(directory(flag), variable, key),
    removeCredential: async (flag, variable) => (await stored()).removeCredential(directory(flag), variable),
    models: async (flag) => (await import("./ModelList.ts")).listModels(readEnvironment(), directory(flag))
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
