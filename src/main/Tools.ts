// Puts the tools of a server together: the built-in ones and those of other sources behind one router, with the policy
// and the sandbox they are held by. Owns what has to be closed with the server.
import { join } from "node:path"
import type { Runner } from "../autonomy/GoalContext.ts"
import { partOf } from "../autonomy/RoleTools.ts"
import { agentTools } from "../autonomy/tools/Agents.ts"
import { WorktreeJanitor, type WorktreeJanitorOptions } from "../autonomy/WorktreeJanitor.ts"
import { readWorktrees, writeWorktrees } from "../config/WorktreeFiles.ts"
import type { NoticeBus } from "../contract/DurableNotices.ts"
import { workspaceOf } from "../machine/view/Select.ts"
import { commandRuling } from "../policy/CommandRules.ts"
import { evaluate } from "../policy/Evaluate.ts"
import { openPolicyFile } from "../policy/PolicyFile.ts"
import type { PromptPort } from "../prompt/PromptPort.ts"
import type { SecretMask } from "../rune/Secrets.ts"
import { detectSandbox } from "../sandbox/Detect.ts"
import { allowedEnvironment } from "../sandbox/Environment.ts"
import { endLeftovers, ownerOf } from "../sandbox/process/Leftovers.ts"
import { makeProcesses } from "../sandbox/process/Processes.ts"
import type { ProcessPort } from "../sandbox/process/ProcessPort.ts"
import type { SandboxPort } from "../sandbox/SandboxPort.ts"
import { type WorkspaceCheck, workspaceCheck } from "../sandbox/WorkspaceCheck.ts"
import { builtinTools } from "../tool/builtin/Builtin.ts"
import type { BlobPort } from "../tool/Output.ts"
import { fixedSource } from "../tool/Source.ts"
import type { ToolSource } from "../tool/Tool.ts"
import type { BeforeCall, ToolPort } from "../tool/ToolPort.ts"
import { makeRouter } from "../tool/ToolRouter.ts"
import type { ExtensionParts, Extensions } from "./Extensions.ts"
import { assemblePrompts, type InstructionOptions } from "./Prompts.ts"

export interface ToolsOptions extends InstructionOptions {
  readonly blobs: BlobPort
  /** What became durable; without it nothing ends with its conversation. */
  readonly notices?: NoticeBus
  /** What commands find besides what they need, and what they never find. */
  readonly sandbox?: { readonly readable: ReadonlyArray<string>; readonly hidden: ReadonlyArray<string> }
  /** Hooks, MCP servers and tools of clients, made of the same processes. */
  readonly extend?: (parts: ExtensionParts) => Extensions
  /** Tools from elsewhere; built-in ones of the same name come first. */
  readonly sources?: ReadonlyArray<ToolSource>
  /** Rules of the server. */
  readonly rules?: ReadonlyArray<unknown>
  readonly beforeCall?: BeforeCall
  /** Told what was kept, or had to stay, of the worktrees of a goal that is over. */
  readonly onWorktrees?: WorktreeJanitorOptions["onReport"]
  /** Told when the file of rules cannot be read: everything is asked about then. */
  readonly onPolicyUnreadable?: (reason: string) => void
}

export interface AssembledTools {
  readonly tools: ToolPort
  readonly extensions?: Extensions
  /** What agents are told about where they work. */
  readonly prompts?: PromptPort
  /** Runs what shows whether a task of a goal is done: in the same sandbox as every command of an agent. */
  readonly runner?: Runner
  /** Writes down for the whole server what a person allowed for good. */
  readonly learn?: (rule: unknown) => Promise<void>
  /** The conversations, once they are there: looks after the worktrees that goals left behind. */
  readonly attach?: (conversations: WorktreeJanitorOptions["conversations"]) => void
  /** Which directories can be workspaces. */
  readonly workspaceCheck?: WorkspaceCheck
  /** What holds commands, in words. */
  readonly sandbox?: Pick<SandboxPort, "contained" | "detail" | "level">
  /** Ends what the tools still have running. */
  readonly close: () => Promise<void>
}

const openProcesses = async ({
  dataDirectory,
  environment,
  sandbox: named = { readable: [], hidden: [] }
}: ToolsOptions): Promise<readonly [SandboxPort, ProcessPort]> => {
  const { homeDirectory: home, variables } = environment
  const sandbox = await detectSandbox({ dataDirectory, home, path: variables["PATH"] ?? "", variables, ...named })
  const overflowDirectory = join(dataDirectory, "overflow")
  const owner = ownerOf(dataDirectory)
  await endLeftovers(owner)
  return [sandbox, makeProcesses({ sandbox, environment: allowedEnvironment(variables), overflowDirectory, owner })]
}

/** Whoever plans or judges a goal does not get help by the side; all others may. */
const helpers: ToolSource = {
  tools: (state, agentId) => (mayHaveHelp(state, agentId) ? agentTools : []),
  find: (state, agentId, name) =>
    mayHaveHelp(state, agentId) ? agentTools.find((tool) => tool.name === name) : undefined
}

const mayHaveHelp = (...[state, agentId]: Parameters<typeof partOf>): boolean =>
  [undefined, "worker"].includes(partOf(state, agentId))

const makeRunner = (
  { contained }: SandboxPort,
  processes: ProcessPort,
  rules: () => ReadonlyArray<unknown>,
  check: WorkspaceCheck
): Runner => ({
  contained,
  run: (request) => processes.run(request),
  ruling: (state, agentId, argv) => {
    const { policy, unsafe_workspace = false } = state.session.config
    const workspace = workspaceOf(state, agentId)
    const issue = check({ workspace, unsafe_workspace })
    if (issue !== undefined) return { decision: "deny", reason: issue }
    const all = [...(policy?.rules ?? []), ...rules()]
    const mode = policy?.mode ?? "auto"
    return commandRuling(argv, { rules: all, workspace, nowMs: state.last_ms, contained, mode, grants: state.grants })
  }
})

const makeWorktreeJanitor = (
  { dataDirectory, onWorktrees }: ToolsOptions,
  runner: Runner,
  conversations: WorktreeJanitorOptions["conversations"]
): WorktreeJanitor =>
  new WorktreeJanitor({
    runner,
    conversations,
    goals: { read: () => readWorktrees(dataDirectory), write: (goals) => writeWorktrees(dataDirectory, goals) },
    ...(onWorktrees === undefined ? {} : { onReport: onWorktrees })
  })

const maskedBlobs = (blobs: BlobPort, secrets: SecretMask): BlobPort => ({
  ...blobs,
  keep: (source, mediaType) =>
    blobs.keep(typeof source === "string" ? secrets.text(source) : secrets.bytes(source), mediaType)
})

export const assembleTools = async (options: ToolsOptions): Promise<AssembledTools> => {
  const { beforeCall, dataDirectory, notices, onPolicyUnreadable, rules, secrets, sources = [] } = options
  const blobs = secrets === undefined ? options.blobs : maskedBlobs(options.blobs, secrets)
  const [sandbox, processes] = await openProcesses(options)
  const heard = onPolicyUnreadable === undefined ? {} : { onUnreadable: onPolicyUnreadable }
  const book = openPolicyFile({ path: join(dataDirectory, "policy.json"), nowMs: () => Date.now(), ...heard })
  const { homeDirectory: home, variables } = options.environment
  const path = variables["PATH"] ?? ""
  const check = workspaceCheck({ home })
  const builtin = builtinTools({ ownDirectories: [dataDirectory], blobs, processes, path, home, check })
  const { tools: own } = builtin
  notices?.subscribe({
    name: "shell sessions",
    appended: (conversationId, runes) => {
      if (runes.some(({ kind }) => kind === "session.closing")) void builtin.closeConversation(conversationId)
    }
  })
  const names = new Set([...own, ...agentTools].map(({ name }) => name))
  const extensions = options.extend?.({
    processes,
    notices,
    isContained: sandbox.contained,
    isBuiltin: (name) => names.has(name)
  })
  const asked = beforeCall ?? extensions?.beforeCall
  let janitor: WorktreeJanitor | undefined
  // The file of rules may change while the server runs.
  const currentRules = (): ReadonlyArray<unknown> => (rules === undefined ? book.rules : [...rules, ...book.rules])
  const runner = makeRunner(sandbox, processes, currentRules, check)
  return {
    tools: makeRouter({
      sources: [fixedSource(own), helpers, ...sources, ...(extensions?.sources ?? [])],
      evaluate,
      sandbox,
      blobs,
      workspaceCheck: check,
      ...(secrets === undefined ? {} : { secrets }),
      get rules() {
        return currentRules()
      },
      ...(asked === undefined ? {} : { beforeCall: asked })
    }),
    ...(extensions === undefined ? {} : { extensions }),
    prompts: assemblePrompts(options, { sandbox, processes, tools: own, rules: currentRules, check }),
    runner,
    workspaceCheck: check,
    sandbox: { level: sandbox.level, detail: sandbox.detail, contained: sandbox.contained },
    attach: (conversations) => {
      const made = makeWorktreeJanitor(options, runner, conversations)
      notices?.subscribe({ name: "worktrees", appended: (_id, runes) => made.notice(runes) })
      janitor = made
      void made.recover()
    },
    learn: (rule) => book.learn(rule),
    close: async () => {
      await janitor?.close()
      await extensions?.close()
      await builtin.close()
      await processes.close()
    }
  }
}
