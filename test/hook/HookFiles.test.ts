// Goal: the right hooks of the right files, read again when they change, and complaints told once. Method: files that
// are values, and states that are nothing but their settings.
import { describe, expect, it } from "vitest"
import { type FileVersion, HookFiles, hashOf } from "#src/hook/HookFiles.ts"
import { hookLimits } from "#src/hook/HookLimits.ts"
import { type ConversationState, emptyConversation } from "#src/machine/State.ts"
import type { ConversationId } from "#src/rune/Ids.ts"

const list = (name: string): string => JSON.stringify({ hooks: [{ name, command: ["true"] }] })

const world = (initial: Readonly<Record<string, string>> = {}, { isContained } = { isContained: true }) => {
  const files = new Map(Object.entries(initial))
  const stamps = new Map<string, number>()
  const trusted = new Set<string>()
  let reads = 0
  const open = (path: string): FileVersion | undefined => {
    const text = files.get(path)
    if (text === undefined) return undefined
    return {
      stamp: String(stamps.get(path) ?? 0),
      text: () => {
        reads += 1
        return text
      }
    }
  }
  const library = new HookFiles({ dataDirectory: "/d", open, isTrusted: (hash) => trusted.has(hash), isContained })
  return {
    library,
    trusted,
    reads: () => reads,
    write: (path: string, text: string) => {
      files.set(path, text)
      stamps.set(path, (stamps.get(path) ?? 0) + 1)
    },
    remove: (path: string) => files.delete(path)
  }
}

const stateOf = (mode?: "auto" | "full_access", notices: ReadonlyArray<string> = []): ConversationState => {
  const state = emptyConversation("conv_00000001" as ConversationId)
  const config = { workspace: "/w", ...(mode === undefined ? {} : { policy: { mode } }) }
  const told = notices.map((message) => ({
    event_id: 1,
    type: "system_error" as const,
    agent_id: null,
    call_id: null,
    message
  }))
  return { ...state, session: { ...state.session, config }, notices: told }
}

const names = (library: HookFiles, state: ConversationState): ReadonlyArray<string> =>
  library.hooksOf(state).batch.map(({ name }) => name)

describe("the hooks of a conversation", () => {
  it("are those of the data directory, then those of the workspace where it may do everything", () => {
    const { library } = world({ "/d/hooks.json": list("own"), "/w/.echs/hooks.json": list("theirs") })
    expect(names(library, stateOf("full_access"))).toEqual(["own", "workspace:theirs"])
    expect(names(library, stateOf("auto"))).toEqual(["own"])
    expect(names(library, stateOf())).toEqual(["own"])
  })

  it("are those of a workspace only where a person trusted them, when nothing holds what they run", () => {
    const files = { "/d/hooks.json": list("own"), "/w/hooks.json": list("theirs") }
    const { library, trusted } = world(files, { isContained: false })
    expect(names(library, stateOf("full_access"))).toEqual(["own"])
    expect(library.complaints(stateOf("full_access"))).toMatchObject([{ code: "hook_config_untrusted" }])
    trusted.add(hashOf(files["/w/hooks.json"]))
    expect(names(library, stateOf("full_access"))).toEqual(["own", "workspace:theirs"])
  })

  it("are those of one list in a workspace: the hidden one comes first", () => {
    const { library, remove } = world({ "/w/.echs/hooks.json": list("hidden"), "/w/hooks.json": list("plain") })
    expect(names(library, stateOf("full_access"))).toEqual(["workspace:hidden"])
    remove("/w/.echs/hooks.json")
    expect(names(library, stateOf("full_access"))).toEqual(["workspace:plain"])
  })

  it("are read once until the file changes, and gone when it is", () => {
    const { library, reads, remove, write } = world({ "/d/hooks.json": list("one") })
    for (let at = 0; at < 5; at += 1) expect(names(library, stateOf())).toEqual(["one"])
    expect(reads()).toBe(1)
    write("/d/hooks.json", list("two"))
    expect(names(library, stateOf())).toEqual(["two"])
    remove("/d/hooks.json")
    expect(names(library, stateOf())).toEqual([])
  })

  it("of a trusted content run, and those of the next content do not", () => {
    const { library, trusted, write } = world({ "/w/hooks.json": list("a") })
    trusted.add(hashOf(list("a")))
    expect(names(library, stateOf("auto"))).toEqual(["workspace:a"])
    write("/w/hooks.json", list("b"))
    expect(names(library, stateOf("auto"))).toEqual([])
  })

  it("are none without a workspace, but for the operator's own", () => {
    const { library } = world({ "/d/hooks.json": list("own"), "/w/hooks.json": list("theirs") })
    const state = stateOf("full_access")
    const { workspace: _, ...config } = state.session.config
    expect(names(library, { ...state, session: { ...state.session, config } })).toEqual(["own"])
  })
})

describe("complaints", () => {
  it("tell of an invalid file until the conversation has been told", () => {
    const { library } = world({ "/d/hooks.json": "{" })
    const [first, ...more] = library.complaints(stateOf())
    expect(first).toMatchObject({ code: "hook_config_invalid", source: "hook", retryable: false })
    expect(first?.message).toMatch(/^\/d\/hooks\.json: it is not JSON.*its hooks are off$/)
    expect(more).toEqual([])
    expect(library.complaints(stateOf(undefined, [`hook_config_invalid: ${first?.message}`]))).toEqual([])
  })

  it("tell of hooks that nobody answers for, but not of files without hooks or without sense", () => {
    const { library, trusted } = world({
      "/w/hooks.json": list("theirs"),
      "/w/.claude/settings.json": JSON.stringify({ permissions: {} }),
      "/w/.claude/settings.local.json": "not json"
    })
    expect(library.complaints(stateOf("auto")).map(({ code }) => code)).toEqual(["hook_config_untrusted"])
    trusted.add(hashOf(list("theirs")))
    expect(library.complaints(stateOf("auto"))).toEqual([])
  })

  it("tell of a file that cannot be read, and of one that is too long", () => {
    const long = world({ "/d/hooks.json": " ".repeat(hookLimits.fileBytesMax + 1) })
    expect(long.library.complaints(stateOf())[0]?.message).toContain("longer than")
    const library = new HookFiles({
      dataDirectory: "/d",
      open: (path) =>
        path === "/d/hooks.json"
          ? {
              stamp: "1",
              text: () => {
                throw new Error("EACCES")
              }
            }
          : undefined,
      isTrusted: () => false,
      isContained: true
    })
    expect(library.complaints(stateOf())[0]?.message).toContain("EACCES")
  })
})
