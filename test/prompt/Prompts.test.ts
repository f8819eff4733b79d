// Goal: the beginning of a prompt is told once, whatever the day; a new day, a changed file and a file that is gone are
// notes, told once each; what is too long is cut with a mark, the same text is told once, secrets of the server never.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { limits } from "#src/prompt/PromptLimits.ts"
import type { Told } from "#src/prompt/PromptPort.ts"
import { makePrompts, type PromptsOptions } from "#src/prompt/Prompts.ts"
import { Story } from "../support/story.ts"

let place = ""
let day = "2026-11-18"
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "echs-prompts-"))
  day = "2026-11-18"
})
afterEach(() => rmSync(place, { recursive: true, force: true }))

const write = (path: string, text: string): void => writeFileSync(join(place, path), text)

const promptsOf = (more: Partial<PromptsOptions> = {}) =>
  makePrompts({
    place: { platform: "linux x64", level: "bubblewrap", contained: true },
    day: () => day,
    userFile: undefined,
    project: true,
    ownDirectories: [],
    touched: () => [],
    mayRead: () => true,
    gitState: () => Effect.succeed("- Git: branch trunk"),
    ...more
  })

/** Tells the agent what there is to tell, and puts it on record as the runtime does. */
const tell = async (story: Story, prompts = promptsOf(), contextTokens = 200_000): Promise<Told | undefined> => {
  const { signal } = new AbortController()
  const told = await prompts.news({ state: story.state, agentId: story.root, contextTokens, signal })
  if (told !== undefined) story.run({ _tag: "InstructAgent", agent_id: story.root, ...told })
  return told
}

const newStory = (): Story => new Story().ready({ workspace: place })

describe("what is told", () => {
  it("is all of it once, then a new day, a change and a loss, once each", async () => {
    mkdirSync(join(place, ".git"))
    write("AGENTS.md", "rule one")
    const story = newStory()
    const first = await tell(story)
    expect(first?.parts.map(({ name }) => name)).toEqual(["environment", "date", "git", "AGENTS.md"])
    for (const word of [place, "2026-11-18", "branch trunk", "rule one", "bubblewrap", "linux x64"])
      expect(first?.text).toContain(word)
    expect(await tell(story)).toBeUndefined()
    day = "2026-11-19"
    const second = await tell(story)
    expect(second?.text).toContain("2026-11-19")
    expect(second?.text).not.toContain("rule one")
    expect(await tell(story)).toBeUndefined()
    write("AGENTS.md", "rule two")
    expect((await tell(story))?.text).toContain("rule two")
    expect(await tell(story)).toBeUndefined()
    rmSync(join(place, "AGENTS.md"))
    const gone = await tell(story)
    expect(gone?.text).toContain("hold no more: AGENTS.md")
    expect(gone?.parts).toEqual([{ name: "AGENTS.md" }])
    expect(await tell(story)).toBeUndefined()
    write("AGENTS.md", "rule two")
    expect((await tell(story))?.text).toContain("rule two")
    expect(story.agent.prompt?.content).toBe(first?.text)
  })

  it("is cut with a mark where it is too long, by the limit and by the model's context", async () => {
    write("AGENTS.md", `begin ${"x".repeat(2 * limits.filesCharsMax)} end`)
    write("CLAUDE.md", "too late")
    const large = await tell(newStory())
    expect(large!.text.length).toBeLessThan(limits.filesCharsMax + 3000)
    expect(large!.text).toMatch(/\[… \d+ more characters of AGENTS.md were left out: read the file for the rest\]/u)
    expect(large!.text).toMatch(/\[… 8 more characters of CLAUDE.md were left out/u)
    const small = await tell(newStory(), promptsOf(), 4000)
    expect(small!.text.length).toBeLessThan(4000 * 3 * limits.contextShare + 3000)
  })

  it("is a text once, though two files have it", async () => {
    write("AGENTS.md", "the same words")
    write("CLAUDE.md", "the same words")
    const { text } = (await tell(newStory()))!
    expect(text.split("the same words")).toHaveLength(2)
    expect(text).toContain("It says the same as AGENTS.md")
  })

  it("holds no secret of the server", async () => {
    write("AGENTS.md", "the key is sk-123456789")
    const prompts = promptsOf({ mask: (text) => text.replaceAll("sk-123456789", "[secret]") })
    expect((await tell(newStory(), prompts))!.text).toContain("the key is [secret]")
  })

  it("is less, and the agent works on, where the place is gone or something breaks", async () => {
    const gone = new Story().ready({ workspace: join(place, "nowhere") })
    expect((await tell(gone))?.parts.map(({ name }) => name)).toEqual(["environment", "date"])
    const without = new Story().ready()
    expect((await tell(without))?.text).toContain("Workspace: none")
    const heard: Array<unknown> = []
    const broken = promptsOf({
      touched: () => {
        throw new Error("broken")
      },
      onTrouble: (error) => heard.push(error)
    })
    expect(await tell(newStory(), broken)).toBeUndefined()
    expect(String(heard[0])).toContain("broken")
  })
})
