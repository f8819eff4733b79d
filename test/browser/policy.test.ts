// Goal: whoever is responsible for the policy sees what it did, tries an edit on what happened, saves it and takes
// permissions back, all on the page. Method: a real server and a scripted model, the page in a real browser; what took
// effect is read from the server and from its log.
import { describe, expect, it } from "vitest"
import { usePageScene } from "../support/pageScene.ts"
import { always, say, use } from "../support/runtime/scenarios.ts"

const scene = usePageScene({
  name: "talker",
  replies: [
    { when: { step: 1, input: "^run it" }, play: [use("write_file", { path: "made.txt", content: "a" })] },
    always(say("It is done."))
  ]
})

const asking = async (title: string): Promise<string> => {
  const id = await scene.create({ title })
  await scene.tell(id, "run it")
  await scene.rune(id, "tool.approval_requested")
  return id
}

/** Answers the question of a conversation as somebody elsewhere would. */
const approve = async (id: string, scope: "once" | "session"): Promise<number> => {
  const { items } = await scene.client.call("approval.list", { conversation_id: id })
  const [{ arguments_hash, call_id } = { arguments_hash: "", call_id: "" }] = items
  const answer = { conversation_id: id, call_id, scope, arguments_hash }
  const { event_id } = await scene.client.call("approval.approve", answer)
  await scene.rune(id, "turn.completed")
  return event_id
}

describe("the policy", { timeout: 120_000 }, () => {
  it("is tried on what happened, saved, and decides about the next call", async () => {
    await approve(await asking("once"), "once")
    const { page } = await scene.open({ hash: "/policy" })
    const field = page.locator("[data-policy]")
    await field.fill(JSON.stringify({ rules: [{ decision: "deny", tool: "write_file", reason: "no files here" }] }))
    const save = page.getByRole("button", { name: "Save" })
    expect(await save.isDisabled()).toBe(true)
    await page.getByRole("button", { name: "Try on history" }).click()
    await page.locator("[data-trial]").getByText("1 would be blocked").waitFor()
    expect((await scene.client.call("policy.get", {})).rules).toEqual([])
    await save.click()
    await page.getByText("Saved.").waitFor()
    await page.locator('[data-rule="0"]').getByText("1 allowed by people").waitFor()
    const id = await scene.create({ title: "denied" })
    await scene.tell(id, "run it")
    expect((await scene.rune(id, "tool.denied")).payload).toMatchObject({ approver: "policy" })
    await field.fill("{ not json")
    await page.getByRole("button", { name: "Try on history" }).click()
    await page.getByText("This is not JSON").waitFor()
    await field.fill(JSON.stringify({ rules: [] }))
    await page.getByRole("button", { name: "Try on history" }).click()
    await page.locator("[data-trial]").waitFor()
    await save.click()
    await page.getByText("No rules yet").waitFor()
  })

  it("shows permissions with their origin, and takes one back", async () => {
    const id = await asking("allowed for longer")
    const given = await approve(id, "session")
    const { page } = await scene.open({ hash: "/policy" })
    const row = page.locator(`[data-grant="${given}"]`, { hasText: "allowed for longer" })
    const origin = row.getByRole("link", { name: `rune ${given}` })
    expect(await origin.getAttribute("href")).toBe(`#/c/${id}/at/${given}`)
    await row.getByRole("button", { name: "Revoke" }).click()
    await page.getByText("Revoked.").waitFor()
    expect(await row.count()).toBe(0)
    await scene.tell(id, "run it")
    await scene.rune(id, "tool.approval_requested", ({ event_id }) => event_id > given)
  })

  it("says in the inbox what the rule on offer would have matched", async () => {
    await asking("to be matched")
    const { page } = await scene.open()
    await page
      .locator(".list-pane")
      .getByRole("link", { name: /to be matched/ })
      .click()
    await page.locator("[data-matched]", { hasText: "allowed by people" }).waitFor()
  })

  it("shows a viewer the rules, and no button that would fail", async () => {
    const { token } = await scene.client.call("token.create", { name: "guest", role: "viewer" })
    const { page } = await scene.open({ token, hash: "/policy" })
    await page.getByText("Permissions in conversations").waitFor()
    await page.locator("[aria-label=Rules]").waitFor()
    expect(await page.locator("main").getByRole("button").count()).toBe(0)
  })
})
