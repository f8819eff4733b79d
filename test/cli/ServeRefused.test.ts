// Goal: what keeps a server from starting is said in one sentence that says what to do, with an exit code and at once.
// Method: the verb itself on data directories that are damaged, occupied or refused.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { make as makeServe } from "#src/main/ServeVerb.ts"
import { recordingTerminal } from "../support/terminal.ts"

const directories: Array<string> = []
afterEach(() => {
  for (const path of directories.splice(0)) rmSync(path, { recursive: true, force: true })
})

const fresh = (): string => {
  const path = mkdtempSync(join(tmpdir(), "echs-refused-"))
  directories.push(path)
  return path
}

const serve = async (directory: string) => {
  const terminal = recordingTerminal()
  // One that starts all the same stops at once.
  terminal.interrupt()
  const environment = { variables: { ECHS_MODEL: "scripted/echo" }, homeDirectory: directory }
  const status = await makeServe({ environment, version: "0.0.0-test" }).run(
    ["--port", "0", "--data", directory],
    terminal
  )
  return { status, stderr: terminal.complaints() }
}

type Spoil = (directory: string) => string

const cases: Readonly<Record<string, readonly [Spoil, RegExp]>> = {
  "a lock.guard that is no database": [
    put("lock.guard", "junk ".repeat(100)),
    /lock\.guard cannot be locked: .*remove the file/
  ],
  "a lock.guard of zeros": [put("lock.guard", Buffer.alloc(4096, 1)), /lock\.guard cannot be locked/],
  "a lock.guard that is a directory": [folder("lock.guard"), /lock\.guard/],
  "a lock that is a directory": [folder("lock"), /lock/],
  "an empty token": [put("token", ""), /token holds no usable token .*remove it to get a new one/],
  "a token of blanks": [put("token", " \n \n"), /token holds no usable token/],
  "a token that is too short": [put("token", "abc"), /token holds no usable token/],
  "a token of two words": [put("token", `${"a".repeat(40)} ${"b".repeat(40)}`), /token holds no usable token/],
  "a token of bytes": [put("token", Buffer.alloc(64, 0xfe)), /token holds no usable token/],
  "a token that is a directory": [folder("token"), /token/],
  "a meta that is junk": [put("meta", "junk"), /meta is damaged/],
  "a place that is a file": [() => join(filled(fresh()), "file"), /cannot be used as the data directory: .*--data/],
  "a place below a file": [
    () => join(filled(fresh()), "file", "data"),
    /cannot be used as the data directory: .*--data/
  ],
  "a file system that makes no directories": [
    () => "/proc/echs",
    /\/proc\/echs cannot be used as the data directory: .*--data/
  ],
  "a file system that takes no files": [
    () => "/proc/self",
    /\/proc\/self cannot be used as the data directory: .*--data/
  ]
}

function put(name: string, content: string | Buffer): Spoil {
  return (directory) => {
    writeFileSync(join(directory, name), content)
    return directory
  }
}

function folder(name: string): Spoil {
  return (directory) => {
    mkdirSync(join(directory, name))
    return directory
  }
}

const filled = (directory: string): string => put("file", "x")(directory)

describe("a server does not start on", () => {
  it.each(Object.entries(cases))("%s, and says so in one sentence", async (_what, [spoil, expected]) => {
    const { status, stderr } = await serve(spoil(fresh()))
    expect(status, stderr).toBe(1)
    expect(stderr).toMatch(/^echs serve: [^\n]+\n$/)
    expect(stderr).toMatch(expected)
    expect(stderr).not.toMatch(/ {4}at |node:internal/)
  })
})
