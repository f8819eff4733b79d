// Goal: what the server knows to be secret stands in nothing that tools say, whole and however it comes; what is too short
// to be told from ordinary text is left alone. Method: random texts in random pieces; a running server whose agent reads
// a file with the server's own keys in it.
// Verifies: INV-SECRET-PRIVACY
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makeSecretMask, secretsIn } from "#src/rune/Secrets.ts"
import { count, reportCount } from "../support/counts.ts"
import { always, say, step, use } from "../support/runtime/scenarios.ts"
import { seedFor } from "../support/seed.ts"
import { startProcess } from "../support/server/Process.ts"
import { Socket } from "../support/server/Socket.ts"

describe("a mask for secrets", () => {
  it("replaces whole values of eight characters and more, the longest first, and nothing else", () => {
    const mask = makeSecretMask(["12345678", "12345678-and-more", "short", undefined, ""])
    expect(mask.text("a 12345678-and-more b 12345678 c short 1234567")).toBe("a [secret] b [secret] c short 1234567")
  })

  it("finds them however a text is cut into pieces, and loses nothing else", async () => {
    const seed = seedFor("secrets in pieces")
    const secrets = ["sk-aaaaaaab", "aaaaaaaa", "zürich-löwe-9", "sk-aaaaaaabcdef"]
    const mask = makeSecretMask(secrets)
    const runs = count("masked texts in pieces", { fast: 2_000, soak: 100_000 })
    const piece = fc.oneof(
      fc.constantFrom(...secrets, "a", "s", "k", "-", "sk-", "sk-aaaaaaa", "zürich-", "\n"),
      fc.string({ unit: "binary", maxLength: 5 })
    )
    let done = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { maxLength: 20 }),
        fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
        async (parts, cuts) => {
          const text = parts.join("").toWellFormed()
          const stream = mask.stream()
          let shown = ""
          for (let at = 0; at < text.length; ) {
            const length = cuts.next().value as number
            shown += stream.push(text.slice(at, at + length))
            at += length
          }
          shown += stream.end()
          const bytes = Buffer.from(text)
          const pieces = async function* (): AsyncGenerator<Uint8Array> {
            for (let at = 0; at < bytes.length; at += 3) yield bytes.subarray(at, at + 3)
          }
          const kept: Array<Uint8Array> = []
          for await (const chunk of mask.bytes(pieces())) kept.push(chunk)
          for (const one of [shown, Buffer.concat(kept).toString(), mask.text(text)]) {
            for (const secret of secrets) expect(one).not.toContain(secret)
            // Only whole values go: without them the same is left.
            if (secrets.every((secret) => !text.includes(secret))) expect(one).toBe(text)
          }
          done += 1
        }
      ),
      { seed, numRuns: runs }
    )
    reportCount("masked texts in pieces", done)
  })

  it("knows secrets by the names of their variables", () => {
    const variables = { OPENAI_API_KEY: "one", GITHUB_TOKEN: "two", DB_PASSWORD: "three", KEYBOARD: "no", PATH: "no" }
    expect(secretsIn(variables)).toEqual(["one", "two", "three"])
  })
})

describe("a server with keys", () => {
  it("writes none of them down, although an agent reads a file that holds them", async () => {
    const place = mkdtempSync(join(tmpdir(), "echs-secrets-"))
    const workspace = join(place, "workspace")
    const data = join(place, "data")
    mkdirSync(workspace)
    mkdirSync(data, { mode: 0o700 })
    const named = "named-token-0123456789"
    writeFileSync(
      join(data, "config.json"),
      JSON.stringify({ tokens: [{ name: "ada", role: "viewer", token: named }] })
    )
    const replies = [
      step(1, use("read_file", { path: "keys.txt" })),
      step(2, use("read_file", { path: "no-sk-live-key-1234567890" })),
      always(say("done"))
    ]
    writeFileSync(join(place, "scenario.json"), JSON.stringify({ name: "keys", replies }))
    const key = "sk-live-key-1234567890"
    const server = await startProcess(data, {
      env: { OPENAI_API_KEY: key, SOME_TOKEN: "abc", DEPLOY_PASSWORD: "correct horse" }
    })
    try {
      writeFileSync(join(workspace, "keys.txt"), `${key}\n${server.token}\n${named}\ncorrect horse\nabc\n`)
      const socket = await Socket.open(server.url)
      await socket.hello(server.token)
      const id = await socket.create({ model: `scripted/${join(place, "scenario.json")}`, workspace })
      const { sub } = await socket.ok("subscribe", { conversation_id: id, after: 0 })
      await socket.ok("message.post", { conversation_id: id, content: "read" })
      await socket.until(() => socket.runes(sub).some(({ kind }) => kind === "turn.completed"))
      const results = socket.runes(sub).filter(({ kind }) => kind === "tool.result")
      const said = JSON.stringify(results)
      expect(said.match(/\[secret\]/g)?.length).toBeGreaterThanOrEqual(4)
      expect(said).toContain("abc")
      for (const secret of [key, server.token, named, "correct horse"]) expect(said).not.toContain(secret)
      await socket.close()
    } finally {
      await server.end("SIGTERM")
      expect(readFileSync(join(data, "token"), "utf8")).not.toBe("")
      rmSync(place, { recursive: true, force: true })
    }
  })
})
