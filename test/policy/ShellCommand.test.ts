// Goal: a command line counts as understood only when its text alone says what will run. Method: tables of forms that
// are and are not, and random lines read both by the parser and by a real bash.
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as fc from "fast-check"
import { afterAll, describe, expect, it } from "vitest"
import { parseCommand } from "#src/policy/ShellCommand.ts"

const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000)
const scratch = mkdtempSync(join(tmpdir(), "echs-shell-"))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const understood: ReadonlyArray<readonly [string, ReadonlyArray<ReadonlyArray<string>>, ReadonlyArray<string>]> = [
  ["git status", [["git", "status"]], []],
  ["  git \t status  ", [["git", "status"]], []],
  ["git commit -m 'a $b `c` *'", [["git", "commit", "-m", "a $b `c` *"]], []],
  ['git commit -m "two\nlines"', [["git", "commit", "-m", "two\nlines"]], []],
  ['echo "a\\"b\\\\c\\$d\\e"', [["echo", 'a"b\\c$d\\e']], []],
  ["echo a\\ b\\;c", [["echo", "a b;c"]], []],
  ["echo ''", [["echo", ""]], []],
  ["echo a'b'\"c\"d", [["echo", "abcd"]], []],
  [
    "npm test 2>&1 | tail -20",
    [
      ["npm", "test"],
      ["tail", "-20"]
    ],
    ["|"]
  ],
  [
    "make && make install || echo no; echo done",
    [["make"], ["make", "install"], ["echo", "no"], ["echo", "done"]],
    ["&&", "||", ";"]
  ],
  ["ls >/dev/null 2>/dev/null", [["ls"]], []],
  ["echo a=b x#y a~b", [["echo", "a=b", "x#y", "a~b"]], []],
  ["/usr/bin/git status", [["/usr/bin/git", "status"]], []],
  ["a&&b", [["a"], ["b"]], ["&&"]]
]

const notUnderstood: ReadonlyArray<string> = [
  "",
  "   ",
  "git status\nrm -rf /",
  "git status\r\nrm",
  "git status $(x)",
  "git status `x`",
  'git status "$(x)"',
  'git status "`x`"',
  "git status $HOME",
  'git status "$HOME"',
  `git status $${"{x:-y}"}`,
  "git status $'a'",
  'git status $"a"',
  "git status &",
  "git status & rm -rf /",
  "git status |& cat",
  "git status ;; x",
  "git status; ",
  "; git status",
  "git status &&",
  "git status > file",
  "git status >> file",
  "git status >file",
  "git status 2>file",
  "git status <file",
  "git status <<EOF",
  "git status <<< word",
  "git status >(x)",
  "git status <(x)",
  "git status >| file",
  "git status &> file",
  "git status 2>&1file",
  "git status >/dev/nullx",
  "git status >/dev/null/../../etc/passwd",
  "git *",
  "g?t status",
  "git [a-z]",
  "git {a,b}",
  "{ git status; }",
  "(git status)",
  "! git status",
  "FOO=1 git status",
  'FOO="1" git status',
  "FOO+=1 git status",
  "PATH=. git status",
  "A[0]=1 git status",
  "eval git status",
  "exec git status",
  "source x",
  ". x",
  "alias git=rm",
  "command git status",
  "builtin cd",
  "export PATH=.",
  "trap x EXIT",
  "set -- a",
  "if true",
  "while true",
  "for x in y",
  "function f",
  "f() { x; }",
  "time git status",
  "coproc x",
  "[[ a == b ]]",
  "[ a = b ]",
  "~/bin/git status",
  "git ~root",
  "git a=~",
  "git a=b:~/c",
  "# comment",
  "git status # comment",
  "git status \\\nrm",
  "git status \\",
  'git "status',
  "git 'status",
  'git "a\\\nb"',
  "'' status",
  "git\u0000 status",
  "git status\u200b",
  "git \u202esutats",
  "git\u001b[2K status",
  "git status \ud800",
  `echo ${"x".repeat(40_000)}`,
  `echo ${"x ".repeat(1100)}`
]

describe("a command line", () => {
  it("is understood when words, quotes and operators are all there is", () => {
    for (const [text, commands, operators] of understood) {
      expect(parseCommand(text), text).toEqual({ _tag: "Understood", line: { commands, operators } })
    }
  })

  it("is not understood when anything else decides what runs, and says why", () => {
    for (const text of notUnderstood) {
      const parsed = parseCommand(text)
      expect(parsed._tag, text).toBe("NotUnderstood")
      if (parsed._tag === "NotUnderstood") expect(parsed.why.length).toBeGreaterThan(5)
    }
    console.log(`command lines: ${understood.length} understood, ${notUnderstood.length} not understood`)
  })

  it("has the words that a real bash finds in it", () => {
    const characters = fc.constantFrom(..."abzA1 -_=/.,:+%^@!#~$`'\"\\;|&<>*?[](){}\n\t 'a \"b".split(""))
    const texts = fc.sample(fc.string({ unit: characters, minLength: 1, maxLength: 14 }), { seed, numRuns: 40_000 })
    const single = texts.flatMap((text) => {
      const parsed = parseCommand(text)
      return parsed._tag === "Understood" && parsed.line.operators.length === 0
        ? [{ text, words: parsed.line.commands[0] }]
        : []
    })
    // Each text is an argument list of a function that prints what it was given, each item ended by a byte of its own.
    const script = single.map(({ text }) => `show ${text}\n`).join("")
    const show = "show() { printf '%s\\001' \"$@\" >&3; printf '\\002' >&3; }\n"
    const ran = spawnSync("/bin/bash", ["--norc"], {
      input: `${show}${script}`,
      cwd: scratch,
      env: { PATH: "" },
      stdio: ["pipe", "ignore", "pipe", "pipe"],
      maxBuffer: 64 * 1024 * 1024
    })
    const found = String(ran.output[3] ?? "")
      .split("\u0002")
      .slice(0, -1)
      .map((one) => one.split("\u0001").slice(0, -1))
    console.log(`seed ${seed}: ${texts.length} random lines, ${single.length} understood`)
    expect(found.length).toBe(single.length)
    for (const [index, { text, words }] of single.entries()) expect(found[index], JSON.stringify(text)).toEqual(words)
    expect(single.length).toBeGreaterThan(500)
  })
})
