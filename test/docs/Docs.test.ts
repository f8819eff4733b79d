// Goal: the documents do not lie. Method: commands they show are run or resolved, links followed, code executed, lists
// compared with what they list.
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, posix } from "node:path"
import { pathToFileURL } from "node:url"
import { describe, expect, it } from "vitest"
import { errorCodes } from "#src/wire/Codes.ts"
import { operationNames } from "#src/wire/Operations.ts"
import { startProcess } from "../support/server/Process.ts"
import { isCode, readTree, top } from "../tidy/Source.ts"
import { anchors, codeBlocks, codeSpans, localLinks, shellCommands, tableRows } from "./Markdown.ts"

const tree = readTree()
const documents = tree.filter(({ path }) => path.endsWith(".md"))
const textOf = (path: string): string => tree.find((file) => file.path === path)?.text ?? ""
const manifest = JSON.parse(readFileSync(join(top, "package.json"), "utf8"))
const onWindows = process.platform === "win32"

const npx = (...args: ReadonlyArray<string>) => spawnSync("npx", args, { cwd: top, encoding: "utf8", shell: onWindows })

/** Undefined when the command is one that exists; else what is wrong with it. */
const commandFault = (command: string, verbs: ReadonlySet<string>): string | undefined => {
  const words = command.replace(/^([A-Z_]+=\S+ )+/, "").split(/\s+/)
  const [program, first, second, third] = words.filter((word) => !word.startsWith("-"))
  if (program === "npm" && (first === "ci" || first === "test" || first === "pack")) return undefined
  if (program === "npm" && first === "run")
    return second !== undefined && second in manifest.scripts ? undefined : `no script "${second}"`
  if (program === "npx" && first === "echs")
    return second === undefined || verbs.has(second) ? undefined : `no verb "${second}"`
  if (program === "npx" && first === "vitest" && second === "run") {
    return third === undefined || /^[<[]/.test(third) || existsSync(join(top, third)) ? undefined : `no ${third}`
  }
  return program !== undefined && existsSync(join(top, program)) ? undefined : "a command that this test does not know"
}

describe("the README", () => {
  const readme = textOf("README.md")

  it("begins with the two commands that install and run", () => {
    const [first] = codeBlocks(readme)
    expect(first?.line).toBe(3)
    expect(first?.text.split("\n").map((line) => line.replace(/\s*#.*/, ""))).toEqual([
      "npm ci && npx echs demo",
      "npm ci && npm test",
      ""
    ])
  })

  it("names a demo that does what it says", () => {
    const run = npx("echs", "demo")
    expect(run.status, run.stderr).toBe(0)
    expect(run.stdout).toContain("Nothing that was acknowledged is lost")
    expect(run.stdout).toMatch(/kill -9 \d+, in the middle of a sentence/)
    expect(run.stdout).toContain("the goal is met, by itself, after the kill")
  })
})

describe("the documents", () => {
  it("show only commands that exist", () => {
    const verbs = new Set(
      [...npx("echs", "--help").stdout.matchAll(/^ {2}([a-z]+) {2}/gm)].map((match) => match[1] ?? "")
    )
    expect(verbs).toContain("demo")
    const shown = documents.flatMap(({ path, text }) => [
      ...codeBlocks(text)
        .filter(({ language }) => language === "sh")
        .flatMap((block) => shellCommands(block).map((command) => ({ path, command }))),
      ...codeSpans(text)
        .filter((span) => /^(npm|npx) /.test(span))
        .flatMap((span) => span.split("&&").map((command) => ({ path, command: command.trim() })))
    ])
    expect(shown.length).toBeGreaterThan(10)
    const faults = shown.flatMap(({ path, command }) => {
      const fault = commandFault(command, verbs)
      return fault === undefined ? [] : [`${path}: ${command}: ${fault}`]
    })
    expect(faults).toEqual([])
  })

  it("mark every block with its language, or show no code in it", () => {
    const unknown = documents.flatMap(({ path, text }) =>
      codeBlocks(text)
        .filter(({ language }) => !["", "sh", "ts", "json", "mermaid", "text"].includes(language))
        .map(({ line }) => `${path}:${line}`)
    )
    expect(unknown).toEqual([])
  })

  it("link to what is there", () => {
    const dead = documents.flatMap(({ path, text }) =>
      localLinks(text)
        .filter((link) => {
          const [target = "", fragment] = link.split("#")
          const file = target === "" ? path : posix.join(posix.dirname(path), target)
          if (!existsSync(join(top, file))) return true
          return fragment !== undefined && !anchors(textOf(file)).has(fragment)
        })
        .map((link) => `${path}: ${link}`)
    )
    expect(dead).toEqual([])
  })

  it("name only files of the project that exist", () => {
    const named = documents
      .filter(({ path }) => !path.startsWith("docs/decisions/"))
      .flatMap(({ path, text }) =>
        codeSpans(text)
          .filter((span) => /^(test|runelog|docs|schemas)\/[\w./-]+\.[a-z]+$/.test(span))
          .map((span) => ({ path, span }))
      )
    expect(
      named.filter(({ span }) => !existsSync(join(top, span))).map(({ path, span }) => `${path}: ${span}`)
    ).toEqual([])
  })

  const programs = documents.flatMap(({ path, text }) =>
    codeBlocks(text)
      .filter(({ language }) => language === "ts")
      .map((block) => [`${path}:${block.line}`, block.text] as const)
  )

  const sources = {
    "echs/runelog": "runelog/Runelog.ts",
    "echs/client": "src/client/Client.ts",
    "echs/server": "src/main/Embed.ts"
  }

  it.for(programs)("run the code they show at %s", async ([, program]) => {
    const directory = mkdtempSync(join(tmpdir(), "echs-docs-"))
    const server = program.includes('"echs/client"') ? await startProcess(join(directory, "data")) : undefined
    try {
      const resolved = Object.entries(sources).reduce(
        (text, [name, path]) => text.replaceAll(`"${name}"`, JSON.stringify(pathToFileURL(join(top, path)).href)),
        program
      )
      writeFileSync(join(directory, "example.ts"), resolved)
      const env = {
        ...process.env,
        ...(server === undefined ? {} : { ECHS_URL: server.url, ECHS_TOKEN: server.token })
      }
      const run = spawnSync(process.execPath, ["example.ts"], { cwd: directory, encoding: "utf8", env })
      expect(run.status, run.stderr).toBe(0)
    } finally {
      await server?.end("SIGKILL")
      rmSync(directory, { recursive: true, force: true })
    }
  })
})

describe("the page about the wire", () => {
  const spans = codeSpans(textOf("docs/PROTOCOL.md"))

  it("names every operation there is, and no other", () => {
    const named = spans.filter((span) => /^[a-z]+(\.[a-z]+)+$/.test(span) && !span.startsWith("data."))
    const plain = operationNames.filter((name) => !name.includes("."))
    expect([...new Set([...named, ...plain.filter((name) => spans.includes(name))])].toSorted()).toEqual(
      [...operationNames].toSorted()
    )
  })

  it("names every error code", () => {
    expect(Object.keys(errorCodes).filter((code) => !spans.includes(code))).toEqual([])
  })
})

describe("the list of dependencies", () => {
  const listed = new Set(codeSpans(textOf("docs/decisions/0003-dependencies.md")))
  const used = ["dependencies", "devDependencies", "optionalDependencies", "overrides"].flatMap((group) =>
    Object.keys(manifest[group])
  )

  it("gives a reason for each", () => {
    expect(used.filter((name) => !listed.has(name))).toEqual([])
  })
})

describe("the list of promises", () => {
  const rows = tableRows(textOf("docs/INVARIANTS.md")).filter(([name]) => /^(G\d+|INV-)/.test(name ?? ""))
  const names = new Set(rows.map(([name]) => name ?? ""))

  it("knows every promise that code or a test cites", () => {
    const cited = tree
      .filter((file) => isCode(file) && !file.path.startsWith("test/docs/"))
      .flatMap(({ path, text }) =>
        [...text.matchAll(/\bINV-[A-Z-]*[A-Z]\b/g)].map((match) => ({ path, name: match[0] }))
      )
    expect(cited.filter(({ name }) => !names.has(name)).map(({ path, name }) => `${path}: ${name}`)).toEqual([])
  })

  it("names tests that exist and cite the promise", () => {
    const faults = rows.flatMap(([name = "", , shownBy = ""]) => {
      if (shownBy === "not yet") return []
      const tests = codeSpans(shownBy)
      if (tests.length === 0) return [`${name}: "${shownBy}" is no test`]
      return tests
        .filter((path) => !new RegExp(`\\b${name}\\b`).test(textOf(path)))
        .map((path) => `${name}: ${path} is missing or does not cite it`)
    })
    expect(faults).toEqual([])
  })

  it("holds each promise once", () => {
    expect(rows.length).toBe(names.size)
    expect(names.size).toBeGreaterThan(30)
  })
})

describe("the reader of Markdown", () => {
  const sample = [
    "# A title: two",
    "",
    "See [this](docs/A.md#x) and [that](https://example.org).",
    "",
    "```sh",
    "a && b # why",
    "```",
    "",
    "| `x` | y |",
    "|---|---|"
  ].join("\n")

  it("finds what the other tests look for", () => {
    expect(codeBlocks(sample).map(shellCommands)).toEqual([["a", "b"]])
    expect(localLinks(sample)).toEqual(["docs/A.md#x"])
    expect([...anchors(sample)]).toEqual(["a-title-two"])
    expect(codeSpans(sample)).toEqual(["x"])
    expect(tableRows(sample)).toEqual([["`x`", "y"]])
  })

  it("knows a command from a lie", () => {
    const verbs = new Set(["demo"])
    const faults = [
      "npm run nothing",
      "npx echs fly",
      "npx vitest run test/nowhere",
      "rm -r .",
      "npm run -s bench -- x",
      "npx echs demo",
      "SEED=1 npx vitest run test/docs"
    ]
    expect(faults.map((command) => commandFault(command, verbs))).toEqual([
      'no script "nothing"',
      'no verb "fly"',
      "no test/nowhere",
      "a command that this test does not know",
      undefined,
      undefined,
      undefined
    ])
  })
})
