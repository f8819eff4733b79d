// Goal: a home, a directory of the system or one of an ECHS server is no workspace: not when a conversation is created or
// forked, not for a goal, not when a tool runs, for no tool and on no level; through links neither. Whoever means one says
// so, on record. Method: the check itself on every kind of place, and a real server with its real tools.
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { RunningServer } from "#src/main/ServeOptions.ts"
import { workspaceCheck } from "#src/sandbox/WorkspaceCheck.ts"
import { readFileTool } from "#src/tool/builtin/files/Read.ts"
import { workspaceAccess } from "#src/tool/builtin/ToolSchema.ts"
import { reportCount } from "../support/counts.ts"
import { startTestServer } from "../support/server/graph.ts"
import { type Json, Socket } from "../support/server/Socket.ts"
import { runTool } from "../support/tool/runTool.ts"
import { freely as allowed } from "../support/worlds.ts"

let place = ""
let server: RunningServer | undefined

beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), "echs-workspaces-")))
  for (const name of ["project", "homes/ann/project", "homes/ann/.ssh", "homes/bob", "home/.aws/x", "data"])
    mkdirSync(join(place, name), { recursive: true })
  writeFileSync(join(place, "home", "secret.txt"), "a key\n")
})

afterEach(async () => {
  await server?.close()
  server = undefined
  rmSync(place, { recursive: true, force: true })
})

const dataDirectory = (name: string): string => {
  const path = join(place, name)
  mkdirSync(join(path, "journal"), { recursive: true })
  mkdirSync(join(path, "blobs"))
  for (const file of ["meta", "token"]) writeFileSync(join(path, file), "x")
  return path
}

const checkHere = () =>
  workspaceCheck({
    home: join(place, "home"),
    accounts: `root:x:0:0::/root:/bin/sh\nann:x:1000:1000::${place}/homes/ann:/bin/sh\nhttp:x:33:33::${place}/project:/bin/false\nnobody:x:65534:65534::/nonexistent:/bin/false\nbroken\n`
  })

describe("the check", () => {
  it("refuses homes, what holds them, the system, keys and data directories, also through links", () => {
    const check = checkHere()
    const data = dataDirectory("server")
    const refused = [
      ...["/", "/etc", "/etc/ssl", "/root", "/home", "/home/somebody", "/usr", "/usr/bin", "/var", "/tmp", "/boot/x"],
      ...["/proc", "/proc/self/cwd/..", "/proc/1/root", "/sys", "/sys/kernel", "/dev", "/dev/shm", "/run"],
      ...["home", "homes", "homes/ann", "", "home/.aws", "home/.aws/x", "homes/ann/.ssh"].map((name) =>
        join(place, name)
      ),
      ...[data, join(data, "blobs"), join(data, "not", "there", "yet")],
      ...[join(place, "project", "..", "home"), "/root/../root/./", "/etc/../"]
    ]
    for (const path of refused) expect(check({ workspace: path }), path).toMatch(/ is no workspace: it /)
    let links = 0
    for (const path of refused) {
      const link = join(place, "project", `link-${links++}`)
      symlinkSync(path, link)
      expect(check({ workspace: link }), path).toMatch(/ is no workspace: it /)
      symlinkSync(link, `${link}-twice`)
      expect(check({ workspace: `${link}-twice` }), path).toMatch(/ is no workspace: it /)
    }
    reportCount("places that are no workspaces", refused.length + 2 * links)
  })

  it("takes every other directory, those in homes and those that are not there yet among them", () => {
    const check = checkHere()
    for (const name of ["project", "homes/ann/project", "homes/bob", "not/there/yet", "home/work", "home/.config/x"])
      expect(check({ workspace: join(place, name) }), name).toBeUndefined()
    expect(check({})).toBeUndefined()
    expect(check({ workspace: "/srv/project" })).toBeUndefined()
  })

  it("takes what is meant, but for what shows the system and what belongs to a server", () => {
    const check = checkHere()
    const meant = (path: string) => check({ workspace: path, unsafe_workspace: true })
    for (const path of ["/", "/etc", "/root", "/home/somebody", join(place, "home"), join(place, "homes/ann/.ssh")])
      expect(meant(path), path).toBeUndefined()
    for (const path of ["/proc/self", "/sys", "/dev/shm", join(dataDirectory("server"), "blobs")])
      expect(meant(path), path).toMatch(/choose another directory/)
  })
})

const scenarios = {
  look: {
    name: "look",
    replies: [
      {
        when: { step: 1 },
        play: [
          { tool: "read_file", arguments: { path: "secret.txt" } },
          { tool: "list_files", arguments: {} },
          { tool: "grep", arguments: { pattern: "key" } },
          { tool: "git_status", arguments: {} },
          { tool: "bash", arguments: { command: "cat secret.txt" } },
          { tool: "write_file", arguments: { path: "new.txt", content: "x" } }
        ]
      },
      { play: [{ text: "told" }] }
    ]
  }
}

const open = async (): Promise<Socket> => {
  const data = join(place, "data")
  const environment = { variables: process.env, homeDirectory: join(place, "home") }
  server = await startTestServer({
    dataDirectory: data,
    scenarios: scenarios as never,
    environment
  })
  const socket = await Socket.open(server.url)
  await socket.hello(server.token)
  return socket
}

const freely: Json = { model: "scripted/look", ...allowed }

/** The results of all calls of one turn, by the name of their tool. */
const turnOf = async (socket: Socket, id: string): Promise<Readonly<Record<string, Json>>> => {
  await socket.ok("subscribe", { conversation_id: id })
  await socket.ok("message.post", { conversation_id: id, content: "go" })
  await socket.rune("turn.completed")
  const payloads = (kind: string): ReadonlyArray<Json> =>
    socket
      .runes()
      .filter((rune) => rune["kind"] === kind && rune["conversation_id"] === id)
      .map((rune) => rune["payload"] as Json)
  const names = new Map(payloads("tool.call").map((call) => [call["call_id"], String(call["tool_name"])]))
  return Object.fromEntries(payloads("tool.result").map((result) => [names.get(result["call_id"]), result]))
}

describe("a server", () => {
  it("creates no conversation and takes no goal in a home, and says what to do", async () => {
    const socket = await open()
    for (const workspace of [join(place, "home"), homedir(), "/", "/etc", join(place, "data")]) {
      for (const [op, fields] of [
        ["conversation.create", {}],
        ["goal.submit", { goal: "anything" }]
      ] as const) {
        const answer = await socket.error(op, { ...fields, ...freely, workspace })
        expect(answer, `${op} ${workspace}`).toMatchObject({ code: "bad_request" })
        expect(JSON.stringify(answer)).toMatch(/is no workspace: it .*(another directory|unsafe_workspace)/)
      }
    }
  })

  it("runs no tool, takes no goal and forks nothing when a workspace leads to a home by now", async () => {
    const socket = await open()
    const link = join(place, "link")
    symlinkSync(join(place, "project"), link)
    const id = await socket.create({ ...freely, workspace: link })
    rmSync(link)
    symlinkSync(join(place, "home"), link)
    const results = await turnOf(socket, id)
    expect(Object.keys(results).sort()).toEqual(["bash", "git_status", "grep", "list_files", "read_file", "write_file"])
    for (const [name, result] of Object.entries(results)) {
      expect(JSON.stringify(result), name).toContain("is no workspace")
      expect(JSON.stringify(result), name).not.toContain("a key")
    }
    const goal = await socket.error("goal.submit", { conversation_id: id, goal: "anything" })
    expect(goal).toMatchObject({ code: "bad_request" })
    const fork = await socket.error("conversation.fork", { conversation_id: id, at_event_id: 1 })
    expect(fork).toMatchObject({ code: "bad_request" })
  })

  it("works there for whoever means it, on record", async () => {
    const socket = await open()
    const id = await socket.create({ ...freely, workspace: join(place, "home"), unsafe_workspace: true })
    const results = await turnOf(socket, id)
    expect(results["read_file"]).toMatchObject({ status: "success", output: "a key\n" })
    const [created] = socket.runes().filter((rune) => rune["kind"] === "session.created")
    expect(created).toMatchObject({
      payload: { config: { workspace: join(place, "home"), unsafe_workspace: true }, principal: "local" }
    })
  })
})

describe("a file tool", () => {
  it("reads of the directory that was checked, however often another is put in its place", async () => {
    const [own, aside] = [join(place, "project"), join(place, "aside")]
    writeFileSync(join(own, "secret.txt"), "nothing\n")
    const tool = readFileTool({
      door: workspaceAccess({ check: checkHere() }),
      blobs: undefined
    })
    const read = async () => (await runTool(tool, { path: "secret.txt" }, { workspace: own } as never)).output
    expect(await read()).toBe("nothing\n")
    const told = new Set<string>()
    for (let round = 0; round < 300; round++) {
      const reading = read()
      // The swap falls at another moment of the work each time.
      for (let pause = 0; pause < round % 12; pause++) await new Promise((resolve) => setImmediate(resolve))
      renameSync(own, aside)
      symlinkSync(join(place, "home"), own)
      told.add((await reading) ?? "refused")
      rmSync(own)
      renameSync(aside, own)
    }
    reportCount("workspaces swapped while they were read", 300)
    expect([...told].filter((text) => text.includes("key"))).toEqual([])
  })
})
