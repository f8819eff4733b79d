// The policy of the server: its rules, what history says about them, an edit that is tried before it is saved, and the
// permissions that people gave in conversations.
import { signal } from "@preact/signals"
import type { Answer, Fields } from "../../client/Client.ts"
import { client, failureText, mayOperate } from "./Connection.ts"

export type PolicyFile = Answer<"policy.get">
export type Trial = Answer<"policy.test">
export type Grant = Answer<"grant.list">["items"][number]

export const policy = signal<PolicyFile | undefined>(undefined)
/** What the calls on record say about the rules as they are. */
export const record = signal<Trial | undefined>(undefined)
export const grants = signal<Answer<"grant.list"> | undefined>(undefined)
export const draft = signal("")
export const trial = signal<Trial | undefined>(undefined)
export const policyFailure = signal("")
export const policyOutcome = signal("")
export const isTrying = signal(false)

type Document = Fields<"policy.set">["policy"]

const documentOf = ({ learnt, mode, rules }: PolicyFile): Document => ({
  ...(mode === null ? {} : { mode }),
  rules,
  ...(learnt.length === 0 ? {} : { learnt })
})

const attempt = async (run: () => Promise<void>): Promise<boolean> => {
  policyFailure.value = ""
  policyOutcome.value = ""
  try {
    await run()
    return true
  } catch (error) {
    policyFailure.value = failureText(error)
    return false
  }
}

const load = async (): Promise<void> => {
  const now = await client().call("policy.get", {})
  policy.value = now
  draft.value = JSON.stringify(documentOf(now), null, 2)
  trial.value = undefined
  const [given, tried] = await Promise.all([
    client().call("grant.list", {}),
    mayOperate() && now.issue === null ? client().call("policy.test", {}) : undefined
  ])
  grants.value = given
  record.value = tried
}

export const followPolicy = (): void => void attempt(load)

/** The draft as a document; throws a sentence for people. */
const parsed = (): Document => {
  try {
    return JSON.parse(draft.value) as Document
  } catch (error) {
    throw new Error(`This is not JSON: ${(error as Error).message}`)
  }
}

export const tryDraft = async (): Promise<void> => {
  isTrying.value = true
  await attempt(async () => {
    trial.value = await client().call("policy.test", { policy: parsed() })
  })
  isTrying.value = false
}

const save = (document: () => Document, done: string): Promise<boolean> =>
  attempt(async () => {
    await client().call("policy.set", { policy: document(), revision: policy.value?.revision ?? "" })
    await load()
    policyOutcome.value = done
  })

export const saveDraft = (): Promise<boolean> => save(parsed, "Saved. The next call is decided by it.")

/** Takes a learnt rule back for the whole server. */
export const forgetRule = (index: number): void => {
  const now = policy.value
  if (now === undefined) return
  const learnt = now.learnt.filter((_, at) => at !== index)
  void save(() => documentOf({ ...now, learnt }), "The rule is gone.")
}

export const revokeGrant = (grant: Grant): void =>
  void attempt(async () => {
    const { conversation_id, event_id: grant_event_id } = grant
    await client().call("grant.revoke", { conversation_id, grant_event_id })
    grants.value = await client().call("grant.list", {})
    policyOutcome.value = "Revoked. The next such call is asked about."
  })

/** What rules would have matched on record, by their JSON; asked once each. */
export const matches = signal<ReadonlyMap<string, Trial["rules"][number]>>(new Map())
const asked = new Set<string>()
const askedMax = 200

export const askMatches = (rule: unknown): void => {
  const key = JSON.stringify(rule)
  if (asked.has(key) || asked.size >= askedMax) return
  asked.add(key)
  const document = { rules: [rule] } as Document
  client()
    .call("policy.test", { policy: document })
    .then(({ rules: [found] }) => {
      if (found !== undefined) matches.value = new Map([...matches.value, [key, found]])
    })
    .catch(failureText)
}
