// The demo goal: pursued by a scripted model, so it needs no key and no network.
import { signal } from "@preact/signals"
import { client, failureText } from "./Connection.ts"
import { addressOf, go } from "./Route.ts"

export const demoFailure = signal("")

export const runDemo = async (): Promise<void> => {
  demoFailure.value = ""
  try {
    const { conversation_id } = await client().call("goal.demo", {})
    go(addressOf("conversation", conversation_id))
  } catch (error) {
    demoFailure.value = failureText(error)
  }
}
