// Goal: every tool that agents are given says whether it changes something, and the list is complete: hooks run after
// those that do. Method: the tools that a server puts together, looked at one by one.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { specsOf } from "#src/tool/remote/Spec.ts"
import { withTools } from "../../support/server/graph.ts"
import { conversationWith, memoryBlobs, rootAgent } from "../../support/tool/ToolPlace.ts"

/** What it does to the world around the conversation. */
const changes: Readonly<Record<string, boolean>> = {
  read_file: false,
  list_files: false,
  grep: false,
  write_file: true,
  edit_file: true,
  apply_patch: true,
  bash: true,
  git_status: false,
  git_diff: false,
  git_commit: true,
  fetch_url: false,
  ask_user: false,
  spawn_agent: false,
  send_agent: false,
  wait_agent: false
}

let place = ""
let offered: ReadonlyArray<readonly [name: string, isChanging: boolean | undefined]> = []

const state = conversationWith({ workspace: "/w" }, {})

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), "echs-builtin-"))
  const environment = { variables: { PATH: process.env["PATH"] ?? "" }, homeDirectory: join(place, "home") }
  offered = await withTools({ dataDirectory: join(place, "data"), environment }, memoryBlobs(), (tools) =>
    tools.describe(state, rootAgent).map(({ name }) => [name, tools.facts(state, rootAgent, name)?.mutating] as const)
  )
})
afterAll(() => rmSync(place, { recursive: true, force: true }))

describe("the tools of a server", () => {
  it("are these, and no others", () => {
    expect(offered.map(([name]) => name).toSorted()).toEqual(Object.keys(changes).toSorted())
  })

  it.each(Object.entries(changes))("%s changes something: %s", (name, isChanging) => {
    expect(new Map(offered).get(name)).toBe(isChanging)
  })
})

describe("a tool of a client", () => {
  const mutating = (spec: object) => {
    const specs = specsOf([{ name: "look_up", ...spec }])
    if (typeof specs === "string") throw new Error(specs)
    return specs[0]!.mutating
  }

  it("counts as one that changes something unless it says otherwise", () => {
    expect(mutating({})).toBe(true)
    expect(mutating({ mutating: true })).toBe(true)
    expect(mutating({ mutating: false })).toBe(false)
  })
})
