// `echs policy`: `check` validates a file of rules; `test` applies it to the tool calls in the log and lists those it
// would have decided differently. Neither changes anything.
import type { AnyRune, Client } from "../../client/Client.ts"
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { argumentsText } from "../render/RuneText.ts"
import { moment, number, oneLine, table } from "../render/Text.ts"
import { exitCode, type Terminal, type Verb } from "../Verb.ts"
import { makeVerb, UsageError } from "../VerbSpec.ts"

export interface PolicyCall {
  readonly conversation_id: string
  readonly event_id: number
  readonly ts_ms: number
  readonly call_id: string
  readonly tool_name: string
  readonly arguments: unknown
  readonly happened: string
  readonly would: string
  readonly reason: string
  /** `blocked`, `asked`, `let_run` or `same`. */
  readonly change: string
}

/** A policy that was read; replays one conversation at a time. */
export interface ReadPolicy {
  readonly rules: number
  readonly mode: string | null
  readonly replay: (conversationId: string) => {
    readonly add: (rune: AnyRune) => void
    readonly finish: () => ReadonlyArray<PolicyCall>
  }
}

export interface PolicyParts extends RemoteParts {
  /** The policy in a file, or what is wrong with it. */
  readonly readPolicy: (path: string) => Promise<ReadPolicy | { readonly issue: string }>
}

const usageOf = (check: Verb, test: Verb): string =>
  [
    "usage: echs policy check FILE [--json]",
    "       echs policy test FILE [CONVERSATION…] [--all] [--json] [--data DIRECTORY] [--url URL]",
    "",
    check.usage.split("\n").slice(2).join("\n"),
    "",
    test.usage.split("\n").slice(2).join("\n")
  ].join("\n")

const readOrComplain = async (parts: PolicyParts, path: string): Promise<ReadPolicy> => {
  const policy = await parts.readPolicy(path)
  if ("issue" in policy) throw new UsageError(`${path}: ${policy.issue}`)
  return policy
}

const makeCheck = (parts: PolicyParts): Verb =>
  makeVerb({
    name: "policy check",
    takes: "FILE",
    positionals: { min: 1, max: 1 },
    options: {},
    example: "echs policy check policy.json",
    run: async ({ answer, positionals: [path = ""] }) => {
      const { mode, rules } = await readOrComplain(parts, path)
      answer({ file: path, mode, rules }, () => `${path}: ${rules} rules${mode === null ? "" : `, mode ${mode}`}\n`)
      return exitCode.done
    }
  })

/** Every conversation, page by page. */
async function* allConversations(client: Client): AsyncGenerator<string> {
  let cursor: string | undefined
  do {
    const page = await client.call("conversation.list", { limit: 200, ...(cursor === undefined ? {} : { cursor }) })
    for (const item of page.items) yield item.conversation_id
    cursor = page.next_cursor
  } while (cursor !== undefined)
}

async function* namedConversations(client: Client, names: ReadonlyArray<string>): AsyncGenerator<string> {
  if (names.length === 0) yield* allConversations(client)
  for (const name of names) yield await findConversation(client, name)
}

const replayOne = async (client: Client, policy: ReadPolicy, id: string): Promise<ReadonlyArray<PolicyCall>> => {
  const replay = policy.replay(id)
  for await (const item of client.tail(id)) {
    if ("caught_up" in item) break
    if ("rune" in item) replay.add(item.rune)
  }
  return replay.finish()
}

interface Report {
  readonly conversations: number
  readonly calls: number
  readonly counts: Readonly<Record<"blocked" | "asked" | "let_run" | "same", number>>
  readonly items: ReadonlyArray<PolicyCall>
}

const reportOf = (
  conversations: number,
  calls: ReadonlyArray<PolicyCall>,
  options: { readonly all: boolean }
): Report => {
  const count = (change: string): number => calls.filter((call) => call.change === change).length
  return {
    conversations,
    calls: calls.length,
    counts: { blocked: count("blocked"), asked: count("asked"), let_run: count("let_run"), same: count("same") },
    items: options.all ? calls : calls.filter((call) => call.change !== "same")
  }
}

const makeTest = (parts: PolicyParts): Verb =>
  makeRemoteVerb(parts, {
    name: "policy test",
    takes: "FILE [CONVERSATION…]",
    positionals: { min: 1, max: 1000 },
    options: { all: { type: "boolean", help: "also list calls whose decision would not change" } },
    example: "echs policy test policy.json last",
    notes: [
      "Without CONVERSATION, tests all of them. Exit code 1 if a call that ran would have been blocked.",
      "Only the rules in FILE count, not the policy in force at the time. Its mode overrides the conversation's."
    ],
    run: async ({ answer, client, positionals: [path = "", ...names], terminal, values }) => {
      const policy = await readOrComplain(parts, path)
      const calls: Array<PolicyCall> = []
      let conversations = 0
      for await (const id of namedConversations(client, names)) {
        calls.push(...(await replayOne(client, policy, id)))
        conversations += 1
      }
      const report = reportOf(conversations, calls, { all: values.all === true })
      answer({ file: path, ...report }, () => reportText(report, terminal))
      return report.counts.blocked > 0 ? exitCode.failed : exitCode.done
    }
  })

const changeWords: Readonly<Record<string, string>> = {
  blocked: "would be blocked",
  asked: "would need approval",
  let_run: "would run",
  same: "unchanged"
}

const reportText = ({ calls, conversations, counts, items }: Report, terminal: Terminal): string => {
  const rows = items.map((item) => [
    moment(item.ts_ms),
    item.conversation_id,
    item.call_id,
    item.happened.replaceAll("_", " "),
    changeWords[item.change] ?? item.change,
    oneLine(`${item.tool_name} ${argumentsText(item.arguments)} (${item.reason})`)
  ])
  const lines = table(rows, terminal).map(([at = "", ...rest], index) => {
    const tone = items[index]?.change === "blocked" ? "bad" : items[index]?.change === "same" ? "quiet" : "notice"
    return `${terminal.paint("quiet", at)}  ${terminal.paint(tone, rest.join("  ").trimEnd())}\n`
  })
  const sums = `${number(counts.blocked)} blocked, ${number(counts.asked)} asked, ${number(counts.let_run)} let run`
  return `${lines.join("")}${number(calls)} calls in ${number(conversations)} conversations: ${sums}, ${number(counts.same)} unchanged\n`
}

export const make = (parts: PolicyParts): Verb => {
  const ways: Readonly<Record<string, Verb>> = { check: makeCheck(parts), test: makeTest(parts) }
  const { check, test } = ways as { readonly check: Verb; readonly test: Verb }
  const usage = usageOf(check, test)
  return {
    usage,
    options: test.options ?? [],
    run: async ([way = "", ...args], terminal) => {
      const verb = Object.hasOwn(ways, way) ? ways[way] : undefined
      if (verb !== undefined) return verb.run(args, terminal)
      terminal.complain(`echs policy: expected "check" or "test". Run "echs policy --help" for usage.\n`)
      return exitCode.usage
    }
  }
}
