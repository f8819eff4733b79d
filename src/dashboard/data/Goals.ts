// Goals: those that are pursued or were last, and submitting a new one.
import { signal } from "@preact/signals"
import type { ConversationSummary, Fields } from "../../client/Client.ts"
import { client, failureText } from "./Connection.ts"
import { addressOf, go } from "./Route.ts"

export const goals = signal<ReadonlyArray<ConversationSummary>>([])
export const areGoalsLoaded = signal(false)
export const goalsFailure = signal("")

/** Conversations that are looked through for goals, the newest first. */
const lookedThrough = 60
const refreshEveryMs = 500

const load = async (): Promise<void> => {
  try {
    const { items } = await client().call("conversation.list", { limit: lookedThrough })
    const found = await Promise.all(
      items
        .filter(({ state }) => state !== "archived")
        .map(({ conversation_id }) =>
          client()
            .call("conversation.get", { conversation_id })
            .catch(() => undefined)
        )
    )
    goals.value = found.filter((one) => one !== undefined && one.plan !== null) as ReadonlyArray<ConversationSummary>
    goalsFailure.value = ""
  } catch (error) {
    goalsFailure.value = failureText(error)
  } finally {
    areGoalsLoaded.value = true
  }
}

/** Only what changed is asked for again. */
const refresh = async (ids: ReadonlySet<string>): Promise<void> => {
  const found = await Promise.all(
    [...ids].map((conversation_id) =>
      client()
        .call("conversation.get", { conversation_id })
        .catch(() => undefined)
    )
  )
  const fresh = found.filter((one) => one !== undefined && one.plan !== null) as ReadonlyArray<ConversationSummary>
  const known = new Map(
    [...fresh, ...goals.value.filter((one) => !ids.has(one.conversation_id))].map((one) => [one.conversation_id, one])
  )
  goals.value = [...known.values()].sort((one, other) => other.updated_ms - one.updated_ms)
}

export const followGoals = (): (() => void) => {
  const stop = new AbortController()
  let changed = new Set<string>()
  let timer: ReturnType<typeof setTimeout> | undefined
  void load()
  const follow = async (): Promise<void> => {
    for await (const item of client().tail("*", {
      after: "tail",
      kinds: ["plan.*", "turn.completed"],
      signal: stop.signal
    })) {
      if (!("rune" in item)) continue
      changed.add(item.rune.conversation_id)
      timer ??= setTimeout(() => {
        timer = undefined
        void refresh(changed)
        changed = new Set()
      }, refreshEveryMs)
    }
  }
  follow().catch(failureText)
  return () => {
    stop.abort()
    clearTimeout(timer)
  }
}

export const submitGoal = async (fields: Fields<"goal.submit">): Promise<string> => {
  try {
    const { conversation_id } = await client().call("goal.submit", fields)
    go(addressOf("conversation", conversation_id))
    return ""
  } catch (error) {
    return failureText(error)
  }
}
