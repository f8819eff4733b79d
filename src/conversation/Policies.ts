// The policy of a server as people see and change it: its rules, what they would have decided about the calls on record, and
// the permissions that people gave in conversations. History is read newest first and up to a limit, so that asking is cheap.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type PolicyDocument, type PolicyFile, readPolicyFile, ServerRules } from "../policy/PolicyFile.ts"
import { type Change, type KnownTools, PolicyReplay, type ReplayedCall } from "../policy/PolicyReplay.ts"
import { ConversationUnknown } from "./ConversationErrors.ts"
import { limits } from "./ConversationLimits.ts"
import { StoredConversations } from "./ConversationService.ts"
import type { ConversationStore } from "./ConversationStore.ts"

export interface PoliciesParts {
  readonly store: Pick<ConversationStore, "list" | "head" | "pages">
  /** Made when first asked for. */
  readonly tools: () => KnownTools
  /** Absent where the server has no file of rules. */
  readonly file?: Pick<PolicyFile, "read" | "replace">
}

/** How often a rule applied, by what became of the calls. */
interface RuleRecord {
  ran: number
  approved: number
  denied: number
  other: number
}

const recordKeys = {
  ran: "ran",
  approved: "approved",
  denied: "denied",
  denied_by_policy: "denied",
  expired: "other",
  waiting: "other",
  not_run: "other"
} as const

interface Replayed {
  readonly title: string
  readonly replay: PolicyReplay
}

const textOf = ({ learnt, mode, rules }: PolicyDocument) => ({ mode: mode ?? null, rules, learnt })

export class Policies {
  private readonly parts: PoliciesParts
  private known: KnownTools | undefined

  constructor(parts: PoliciesParts) {
    this.parts = parts
  }

  /** Nothing where the server has no file of rules. */
  show() {
    const { file } = this.parts
    if (file === undefined) return undefined
    const { document, issue, revision } = file.read()
    return { revision, ...textOf(document), issue: issue ?? null }
  }

  /** Rejects with PolicyUnreadable or PolicyChanged. */
  async save(policy: unknown, revision: string): Promise<{ readonly revision: string } | undefined> {
    const saved = await this.parts.file?.replace(policy, revision)
    return saved === undefined ? undefined : { revision: saved.revision }
  }

  /** Puts the calls on record to a policy: the one of the server, unless another is given. */
  async test(policy: unknown, conversationId?: string) {
    const document =
      policy === undefined
        ? (this.parts.file?.read().document ?? { rules: [], learnt: [] })
        : readPolicyFile(JSON.stringify(policy))
    const records = [...document.rules, ...document.learnt].map((): RuleRecord => emptyRecord())
    const counts: Record<Change, number> = { blocked: 0, asked: 0, let_run: 0, same: 0 }
    const changed: Array<ReplayedCall> = []
    let [conversations, calls] = [0, 0]
    const isComplete = await this.replayed(document, conversationId, ({ replay }) => {
      conversations += 1
      for (const call of replay.finish()) {
        calls += 1
        counts[call.change] += 1
        const record = call.rule === null ? undefined : records[call.rule]
        if (record !== undefined) record[recordKeys[call.happened]] += 1
        if (call.change !== "same") changed.push(call)
      }
    })
    const newest = changed.sort((one, other) => other.ts_ms - one.ts_ms).slice(0, limits.replayedCallsMax)
    return { conversations, calls, counts, rules: records, items: newest, complete: isComplete }
  }

  /** Permissions that hold in conversations, with where they were given. */
  async grants(conversationId?: string) {
    const items: Array<Replayed["replay"]["grants"][number] & { conversation_id: string; title: string }> = []
    const isComplete = await this.replayed({ rules: [], learnt: [] }, conversationId, ({ replay, title }, id) => {
      for (const grant of replay.grants) items.push({ conversation_id: id, title, ...grant })
    })
    return {
      items: items.slice(0, limits.grantsShownMax),
      complete: isComplete && items.length <= limits.grantsShownMax
    }
  }

  /** Replays conversations one after the other, newest first. False when there were more than the limits allow. */
  private async replayed(
    policy: PolicyDocument,
    only: string | undefined,
    each: (one: Replayed, conversationId: string) => void
  ): Promise<boolean> {
    this.known ??= this.parts.tools()
    let [conversations, runes] = [0, 0]
    for await (const { conversation_id: id, title } of this.listed(only)) {
      if (conversations >= limits.replayConversationsMax || runes >= limits.replayRunesMax) return false
      const replay = new PolicyReplay(id, policy, this.known)
      for await (const page of this.parts.store.pages(id)) {
        for (const rune of page.runes) replay.add(rune)
        runes += page.runes.length
      }
      conversations += 1
      each({ title, replay }, id)
    }
    return true
  }

  private async *listed(only: string | undefined) {
    const { store } = this.parts
    if (only !== undefined) {
      if ((await store.head(only)) === 0) throw new ConversationUnknown({ conversation_id: only })
      yield { conversation_id: only, title: "" }
      return
    }
    for (let cursor: string | undefined; ; ) {
      const page = await store.list({ limit: 200, ...(cursor === undefined ? {} : { cursor }) })
      yield* page.items
      if (page.next_cursor === undefined) return
      cursor = page.next_cursor
    }
  }
}

const emptyRecord = (): RuleRecord => ({ ran: 0, approved: 0, denied: 0, other: 0 })

export class PolicyService extends Context.Service<PolicyService, Policies>()("echs/PolicyService") {
  static readonly layer = (
    tools: () => KnownTools
  ): Layer.Layer<PolicyService, never, StoredConversations | ServerRules> =>
    Layer.effect(
      PolicyService,
      Effect.gen(function* () {
        const { file } = yield* ServerRules
        const store = yield* StoredConversations
        return new Policies({ store, tools, ...(file === undefined ? {} : { file }) })
      })
    )
}
