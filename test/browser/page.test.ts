// Goal: a person can do with the page what it says. Method: the server as people start it, a scripted model, the page in a
// real browser, used with keys, clicks and taps; the truth of what happened is read from the server's log.
import { gzipSync } from "node:zlib"
import axe from "axe-core"
import type { Page } from "playwright-core"
import { describe, expect, it } from "vitest"
import { bundlePage } from "../../.ci/page.ts"
import { phone } from "../support/page.ts"
import { type PageScene, usePageScene } from "../support/pageScene.ts"
import { always, say, use } from "../support/runtime/scenarios.ts"
import { freely } from "../support/worlds.ts"

const hostile = [
  "<script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">",
  "[click me](javascript:alert(1)) and [this](https://example.org/path)",
  "right \u202eto left\u202c, zero\u200bwidth, \u001b[31mred\u001b[0m \u001b]0;title\u0007",
  "| n | text |\n|---|---|\n".concat(Array.from({ length: 10_000 }, (_, n) => `| ${n} | row |`).join("\n"))
].join("\n\n")

/** What the scripted model says to each input. */
const talker = {
  name: "talker",
  replies: [
    { when: { step: 1, input: "^run it" }, play: [say("I run it.\n"), use("bash", { command: "echo a >> made.txt" })] },
    { when: { step: 1, input: "^ask me" }, play: [use("ask_user", { question: "Which color?" })] },
    { when: { step: 1, input: "^hostile" }, play: [say(hostile)] },
    { when: { step: 1, input: "^long line" }, play: [say("x".repeat(500_000))] },
    { when: { step: 1, input: "^count" }, play: [use("bash", { command: "seq 1 60000; echo '<script>'" })] },
    { when: { step: 1, input: "^slow" }, play: [say("word ".repeat(600), { chunk_chars: 5, delay_ms: 15 })] },
    always(say("It is **done**."))
  ]
}

const scene = usePageScene(talker)
const open = (options: Parameters<PageScene["open"]>[0] = {}) => scene.open(options)
const create = (fields: object = {}) => scene.create(fields)
const tell = (id: string, content: string) => scene.tell(id, content)
const rune: PageScene["rune"] = (...args) => scene.rune(...args)
const runesOf = (id: string) => scene.runesOf(id)

/** A conversation with a call that waits. */
const asking = async (title: string): Promise<string> => {
  const id = await create({ title })
  await tell(id, "run it")
  await rune(id, "tool.approval_requested")
  return id
}

/** Selects an item of the inbox and waits until all of it is there. */
const select = async (page: Page, name: RegExp): Promise<void> => {
  await page.locator(".list-pane").getByRole("link", { name }).click()
  await page.locator("article").getByRole("link", { name }).waitFor()
  await page.locator("article").getByRole("button").first().waitFor()
}

const seriousFindings = async (page: Page): Promise<ReadonlyArray<string>> => {
  await page.evaluate(`${axe.source}; 0`)
  const found = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as {
    readonly violations: ReadonlyArray<{
      readonly id: string
      readonly impact: string
      readonly nodes: ReadonlyArray<{ readonly html: string }>
    }>
  }
  return found.violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html ?? ""}`)
}

describe("the page", { timeout: 120_000 }, () => {
  it("needs less than 120 kB for its first load", async () => {
    const sizes = (await bundlePage()).map(({ base64 }) => gzipSync(Buffer.from(base64, "base64")).length)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(120_000)
  })

  it("asks whoever is not signed in for a ticket, and has none in its address afterwards", async () => {
    const { context, page } = await open()
    expect(page.url()).toBe(`${scene.server.url}/#/inbox`)
    const stranger = await context.browser()!.newContext()
    const other = await stranger.newPage()
    await other.goto(scene.server.url)
    await other.getByText("echs open").waitFor()
    await other.getByRole("textbox").fill(scene.server.token)
    await other.getByRole("button", { name: "Sign in" }).click()
    await other.waitForSelector(".rail")
    await other.reload()
    await other.waitForSelector(".rail")
    await other.getByRole("button", { name: "Sign out" }).click()
    await other.getByText("echs open").waitFor()
    await stranger.close()
  })
})

describe("the inbox", { timeout: 120_000 }, () => {
  it("shows every character of what would run, and is answered with keys alone", async () => {
    const id = await asking("by keyboard")
    const { page } = await open()
    await page.locator(".item").first().waitFor()
    await page.keyboard.press("j")
    const shown = page.locator('[data-argument="command"] [data-exact] .text')
    expect(await shown.textContent()).toBe("echo a >> made.txt")
    expect(await page.title()).toMatch(/^\(\d+\) ECHS$/)
    await page.keyboard.press("a")
    const { payload } = await rune(id, "tool.approved")
    expect(payload).toMatchObject({ approver: "local", channel: "websocket", scope: "once" })
    await rune(id, "turn.completed")
    await page.getByLabel("Decision").getByText("Allowed once: bash").waitFor()
  })

  it("denies, and allows with other arguments", async () => {
    const [first, second] = [await asking("to deny"), await asking("to edit")]
    const { page } = await open()
    await select(page, /to deny/)
    await page.keyboard.press("d")
    await rune(first, "tool.denied")
    await select(page, /to edit/)
    await page.keyboard.press("e")
    const field = page.locator("[data-edit]")
    await field.fill('{ "command": "echo edited" }')
    await page.getByRole("button", { name: "Allow once with these" }).click()
    const { payload } = await rune(second, "tool.approved")
    expect((payload as { readonly arguments?: unknown }).arguments).toEqual({ command: "echo edited" })
    const result = await rune(second, "tool.result")
    expect((result.payload as { readonly output?: string }).output).toContain("edited")
  })

  it("answers a question", async () => {
    const id = await create({ title: "a question" })
    await tell(id, "ask me")
    await rune(id, "tool.approval_requested")
    const { page } = await open()
    await select(page, /a question/)
    await page.locator("[data-answer]").fill("blue")
    await page.getByRole("button", { name: "Answer" }).click()
    const result = await rune(id, "tool.result")
    expect((result.payload as { readonly output?: string }).output).toContain("blue")
  })

  it("is used with a thumb: targets of 48 pixels, deny far from allow", async () => {
    const id = await asking("by thumb")
    const { page } = await open({ size: phone })
    await page.getByRole("link", { name: /by thumb/ }).tap()
    const allow = page.getByRole("button", { name: /Allow once/ })
    const deny = page.getByRole("button", { name: "Deny", exact: true })
    const [allowBox, denyBox] = [await allow.boundingBox(), await deny.boundingBox()]
    expect(Math.min(allowBox?.height ?? 0, denyBox?.height ?? 0)).toBeGreaterThanOrEqual(48)
    expect((denyBox?.y ?? 0) - (allowBox?.y ?? 0) - (allowBox?.height ?? 0)).toBeGreaterThanOrEqual(24)
    await deny.tap()
    await rune(id, "tool.denied")
  })

  it("lets one of two browsers decide, and tells the other", async () => {
    const id = await asking("a race")
    const [one, other] = [await open(), await open()]
    for (const { page } of [one, other]) {
      await select(page, /a race/)
    }
    await Promise.all([one.page.keyboard.press("a"), other.page.keyboard.press("d")])
    await rune(id, "turn.completed")
    const decisions = (await runesOf(id)).filter(({ kind }) => kind === "tool.approved" || kind === "tool.denied")
    expect(decisions).toHaveLength(1)
    for (const { page } of [one, other])
      await expect.poll(() => page.getByRole("link", { name: /a race/ }).count()).toBe(0)
  })

  it("shows a viewer everything and no button that would fail", async () => {
    const id = await asking("for a viewer")
    const { token } = await scene.client.call("token.create", { name: "guest", role: "viewer" })
    const { page } = await open({ token })
    await page.getByRole("link", { name: /for a viewer/ }).click()
    await page.getByText("your role is viewer").waitFor()
    expect(await page.getByRole("button", { name: /Allow|Deny|Edit/ }).count()).toBe(0)
    await page.keyboard.press("a")
    await page.goto(`${scene.server.url}/#/c/${id}`)
    await page.locator(".transcript .entry").first().waitFor()
    expect(await page.locator("[data-composer], [data-verb]").count()).toBe(0)
    expect((await runesOf(id)).some(({ kind }) => kind === "tool.approved")).toBe(false)
    await scene.client.call("conversation.close", { conversation_id: id })
  })
})

describe("a goal", { timeout: 120_000 }, () => {
  it("is run from the page: the demo, its plan sent back and approved, its command allowed, its end seen", async () => {
    const { page } = await open({ hash: "/goals" })
    await page.getByRole("button", { name: "Run the demo goal" }).click()
    await page.locator(".conversation").waitFor()
    const id = page.url().split("/c/")[1] ?? ""
    await rune(id, "plan.created")
    await page.goto(`${scene.server.url}/#/inbox/${encodeURIComponent(`${id}.plan`)}`)
    await page.getByText("sh check.sh menu/menu.txt").first().waitFor()
    await page.keyboard.press("d")
    await page.locator("[data-send-back]").fill("soup first, please")
    await page.getByRole("button", { name: "Send back" }).click()
    expect((await rune(id, "plan.rejected")).payload).toMatchObject({ reason: "soup first, please" })
    await rune(id, "plan.created", (one) => (one.payload as { readonly revision?: number }).revision === 2)
    await page.getByText("Plan 2").waitFor()
    await page.keyboard.press("a")
    await rune(id, "plan.approved")
    await rune(id, "tool.approval_requested")
    await page
      .getByRole("link", { name: /approve bash/ })
      .first()
      .click()
    while (!(await runesOf(id)).some(({ kind }) => kind === "plan.goal_met")) {
      const allow = page.getByRole("button", { name: /Allow once/ })
      if (await allow.isVisible().catch(() => false)) await page.keyboard.press("a")
      const link = page.getByRole("link", { name: /approve bash.*demo/ }).first()
      if (await link.isVisible().catch(() => false)) await link.click({ timeout: 1_000 }).catch(() => undefined)
      await page.waitForTimeout(100)
    }
    await page.goto(`${scene.server.url}/#/c/${id}`)
    await page.getByText(/Goal met/).waitFor()
    await page.locator(".side .chip.done").first().waitFor()
  })
})

describe("one conversation", { timeout: 120_000 }, () => {
  it("is talked to, steered and stopped, and its words stream", async () => {
    const id = await create({ title: "talk" })
    const { page } = await open({ hash: `/c/${id}` })
    await page.locator("[data-composer]").fill("slow, please")
    await page.locator("[data-composer]").press("Enter")
    await page.locator(".entry.answer .caret").waitFor()
    await page.locator("[data-composer]").press("Escape")
    await rune(id, "turn.interrupted")
    await page.getByText("Stopped").waitFor()
    await page.locator("[data-composer]").fill("hello")
    await page.getByRole("button", { name: /Steer/ }).click()
    await page.locator(".entry.answer strong", { hasText: "done" }).waitFor()
  })

  it("is looked at in its past, and forked from there", async () => {
    const id = await create({ title: "to fork" })
    await tell(id, "first")
    await rune(id, "turn.completed")
    const { last_event_id: then } = await scene.client.call("conversation.get", { conversation_id: id })
    await tell(id, "second")
    await rune(id, "turn.completed", ({ event_id }) => event_id > then)
    const { page } = await open({ hash: `/c/${id}/at/${then}` })
    await page.getByText(`You are looking at`).waitFor()
    await page.locator(".entry.input", { hasText: "first" }).waitFor()
    expect(await page.locator(".entry.input", { hasText: "second" }).count()).toBe(0)
    await page.getByRole("tab", { name: "Compare" }).click()
    await page.locator("[data-changes] > div", { hasText: "turns" }).locator("del", { hasText: "1" }).waitFor()
    await page.locator("[data-changes] > div", { hasText: "turns" }).locator("ins", { hasText: "2" }).waitFor()
    await page.getByRole("button", { name: "Fork from here" }).click()
    await expect.poll(() => page.url()).not.toContain(id)
    await page.locator(".entry.input", { hasText: "first" }).waitFor()
    const forked = page.url().split("/c/")[1] ?? ""
    expect((await runesOf(forked)).some(({ kind }) => kind === "session.forked")).toBe(true)
  })

  it("is paused, closed and archived", async () => {
    const id = await create({ title: "to archive" })
    const { page } = await open({ hash: `/c/${id}` })
    for (const verb of ["pause", "close", "archive"]) await page.locator(`[data-verb="${verb}"]`).click()
    await rune(id, "session.archived")
    await page.getByText("archived").first().waitFor()
  })

  it("stays what it is when the server is killed and comes back: no gap, no repeat", async () => {
    const id = await create({ title: "survivor" })
    const { page } = await open({ hash: `/c/${id}` })
    await page.locator("[data-composer]").fill("slow, please")
    await page.locator("[data-composer]").press("Enter")
    await page.locator(".entry.answer .caret").waitFor()
    await scene.crash(async () => {
      await page.getByText("Reconnecting").waitFor()
      await page.locator("[data-composer]").fill("said while it was away")
      await page.locator("[data-composer]").press("Enter")
    })
    await rune(id, "turn.started", ({ payload }) => JSON.stringify(payload).includes("while it was away"))
    await rune(id, "turn.completed", ({ turn_id }) => turn_id === "turn_2")
    await page.locator(".entry.answer strong", { hasText: "done" }).waitFor()
    await expect.poll(() => page.getByText("Reconnecting").count()).toBe(0)
    expect(await page.locator(".entry.input", { hasText: "while it was away" }).count()).toBe(1)
    const answer = await page.locator(".entry.answer").first().textContent()
    expect(answer?.match(/word/g)).toHaveLength(600)
  })

  it("shows a hostile transcript as text, and stays usable", async () => {
    const id = await create({ title: "hostile" })
    await tell(id, "hostile")
    await rune(id, "turn.completed")
    const { page } = await open({ hash: `/c/${id}` })
    await page.getByText("<script>").waitFor()
    expect(await page.title()).not.toBe("taken")
    expect(await page.locator(".transcript script, .transcript img").count()).toBe(0)
    const targets = await page
      .locator(".markdown a")
      .evaluateAll((links) => links.map((link) => link.getAttribute("href")))
    expect(targets).toEqual(["https://example.org/path"])
    await page.getByText("(example.org)").waitFor()
    const text = await page.locator(".entry.answer").textContent()
    expect(text).toContain("right \\u{202e}to left")
    for (const hidden of ["\u202e", "\u200b", "\u001b"]) expect(text).not.toContain(hidden)
    expect(await page.locator(".markdown tbody tr").count()).toBe(100)
    await tell(id, "long line")
    await rune(id, "turn.completed", ({ turn_id }) => turn_id === "turn_2")
    await page.getByRole("button", { name: /more characters/ }).waitFor()
  })
})

describe("a long output", { timeout: 120_000 }, () => {
  it("is read to its end on the page, as text", async () => {
    const id = await create({ title: "counts", ...freely })
    await tell(id, "count")
    await rune(id, "turn.completed")
    const { page } = await open({ hash: `/c/${id}` })
    await page.getByRole("button", { name: /bash/ }).click()
    const output = page.locator("[data-whole-output]")
    await output.getByRole("button", { name: /Show all/ }).click()
    await output.getByRole("button", { name: /Show more/ }).click()
    await output.getByText("<script>").waitFor()
    const text = await output.locator("pre").textContent()
    expect(text?.split("\n").slice(0, 60_001)).toEqual([
      ...Array.from({ length: 60_000 }, (_, at) => String(at + 1)),
      "<script>"
    ])
    expect(await output.getByRole("button", { name: /Show/ }).count()).toBe(0)
    const download = page.waitForEvent("download")
    await output.getByRole("link", { name: "Download" }).click()
    expect((await download).suggestedFilename()).toMatch(/^[0-9a-f]{12}\.txt$/)
  })
})

describe("the list of conversations", { timeout: 120_000 }, () => {
  it("is searched, and closes what is selected", async () => {
    const ids = [
      await create({ title: "apple one" }),
      await create({ title: "apple two" }),
      await create({ title: "pear" })
    ]
    const { page } = await open({ hash: "/conversations" })
    await page.getByRole("searchbox", { name: "Search" }).fill("apple")
    await expect.poll(() => page.locator(".conversation-row").count()).toBe(2)
    const row = page.locator(".conversation-row", { hasText: "apple one" })
    expect(await row.locator(".model").textContent()).toContain("scripted/talker.json")
    expect(await row.locator(".place").textContent()).toBe(scene.workspace)
    for (const box of await page.getByRole("checkbox").all()) await box.check()
    await page.getByRole("button", { name: "Close" }).click()
    await page.getByText("2 closed").waitFor()
    const states = await Promise.all(ids.map((id) => scene.client.call("conversation.get", { conversation_id: id })))
    expect(states.map(({ state }) => state)).toEqual(["closed", "closed", "active"])
  })
})

describe("the overview", { timeout: 120_000 }, () => {
  it("draws what was used by day, model and directory", async () => {
    const id = await create({ title: "used" })
    await tell(id, "hello")
    await rune(id, "turn.completed")
    const { page } = await open({ hash: "/overview" })
    await page.getByRole("img", { name: "Cost by day" }).waitFor()
    expect(await page.locator(".day-bars rect").count()).toBe(14)
    await page.locator('[aria-label="By directory"] .bar-row', { hasText: scene.workspace }).waitFor()
    await page.locator('[aria-label="By model"] .bar-row').first().waitFor()
    await page.getByText("Commit latency").waitFor()
  })
})

describe("accessibility", { timeout: 120_000 }, () => {
  it("has no serious finding in any view, in both themes and both sizes", async () => {
    const id = await asking("for axe")
    const places = [
      "/inbox",
      `/inbox/${encodeURIComponent(`${id}.approval call_1`)}`,
      "/goals",
      "/goals/new",
      "/conversations",
      `/c/${id}`,
      `/c/${id}/at/3`,
      "/policy",
      "/overview"
    ]
    const findings: Array<string> = []
    for (const size of [undefined, phone]) {
      const { page } = await open(size === undefined ? {} : { size })
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
        for (const place of places) {
          await page.goto(`${scene.server.url}/#${place}`)
          await page.waitForTimeout(300)
          findings.push(...(await seriousFindings(page)).map((one) => `${place} ${colorScheme}: ${one}`))
        }
      }
    }
    expect([...new Set(findings)]).toEqual([])
  })
})
