// Goal: a rule against a command is not passed by a program that runs programs. Where a rule denies a command, every line
// that is not understood, and every program that is not known to start no other, is asked about in every mode; nothing is
// let through. Method: many lines, each of which would remove a file under `deny rm **`, the removal shown for real for
// those whose programs are on the machine; and lines of simple programs, which no rule about others holds up.
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { commandRuling } from "#src/policy/CommandRules.ts"
import { evaluate } from "#src/policy/Evaluate.ts"
import type { PolicyMode, PolicyQuestion } from "#src/policy/PolicyPort.ts"
import { reportCount } from "../support/counts.ts"

/** Each removes the file `victim`, if its program is there. */
const removing: ReadonlyArray<string> = [
  "env rm victim",
  "env -i rm victim",
  "env A=b rm victim",
  "env -S 'rm victim'",
  "/usr/bin/env rm victim",
  "nice rm victim",
  "nice -n 5 rm victim",
  "ionice -c 3 rm victim",
  "nohup rm victim",
  "timeout 5 rm victim",
  "timeout -s KILL 5 rm victim",
  "setsid rm victim",
  "setsid -w rm victim",
  "stdbuf -o0 rm victim",
  "chrt -o 0 rm victim",
  "taskset 1 rm victim",
  "flock /tmp rm victim",
  "prlimit --nofile=100 rm victim",
  "setpriv --no-new-privs rm victim",
  "unshare rm victim",
  "chroot / rm victim",
  "nsenter rm victim",
  "linux64 rm victim",
  "setarch x86_64 rm victim",
  "choom -n 0 -- rm victim",
  "sudo rm victim",
  "doas rm victim",
  "su -c 'rm victim'",
  "runuser -u root rm victim",
  "runuser -c 'rm victim'",
  "start-stop-daemon --start --oknodo --exec /bin/rm -- victim",
  "run-parts --arg=victim --regex '^rm$' /bin",
  "xargs rm",
  "echo victim | xargs rm",
  "echo victim | xargs -I x rm x",
  "find . -name victim -delete",
  "find . -name victim -exec rm '{}' ';'",
  "find . -name victim -execdir rm '{}' +",
  "find . -name victim -ok rm '{}' ';'",
  "sh -c 'rm victim'",
  "bash -c 'rm victim'",
  "dash -c 'rm victim'",
  "zsh -c 'rm victim'",
  "ksh -c 'rm victim'",
  "fish -c 'rm victim'",
  "echo 'rm victim' | sh",
  "sh script.sh",
  "./script.sh",
  "busybox rm victim",
  "busybox sh -c 'rm victim'",
  "toybox rm victim",
  "python3 -c 'import os; os.remove(\"victim\")'",
  'python3 -c \'import subprocess; subprocess.run(["rm", "victim"])\'',
  "perl -e 'unlink \"victim\"'",
  "perl -e 'system \"rm victim\"'",
  "ruby -e 'File.delete \"victim\"'",
  "node -e 'fs.unlinkSync(\"victim\")'",
  "php -r 'unlink(\"victim\");'",
  "lua -e 'os.remove(\"victim\")'",
  "awk 'BEGIN { system(\"rm victim\") }'",
  "gawk 'BEGIN { system(\"rm victim\") }'",
  "mawk 'BEGIN { system(\"rm victim\") }'",
  "awk 'BEGIN { \"rm victim\" | getline }'",
  "sed '1e rm victim' script.sh",
  "sed -n 's/.*/rm victim/ep' one-line.txt",
  "echo '!rm victim' | ed",
  "ex -c '!rm victim' -c q",
  "vim -es -c '!rm victim' -c q",
  "make -f makefile all",
  "make --eval 'all:;rm victim'",
  "cmake -E rm victim",
  "ninja",
  "npm run clean",
  "npx rimraf victim",
  "yarn clean",
  "cargo run",
  "go run .",
  "git -c alias.x='!rm victim' x",
  "git -c core.pager='rm victim' -p log",
  "git -c core.editor='rm victim' commit",
  "git rebase --exec 'rm victim' HEAD",
  "git bisect run rm victim",
  "git submodule foreach 'rm victim'",
  "git clean -fdx",
  "git rm -f victim",
  "tar -cf /dev/null --to-command='rm victim' script.sh",
  "tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec='rm victim' script.sh",
  "tar -cf /dev/null -I 'sh -c \"rm victim; cat\"' script.sh",
  "tar -cf x.tar --remove-files victim",
  "zip -qm x.zip victim",
  "zip x.zip script.sh -T -TT 'rm victim #'",
  "rsync -e 'rm victim' a: b",
  "ssh -o ProxyCommand='rm victim' localhost",
  "scp -o ProxyCommand='rm victim' localhost:x y",
  "sort -S 1 --compress-program=./script.sh victim",
  "sort --comp=./script.sh victim",
  "split --filter='rm victim' script.sh",
  "install --strip-program=./script.sh -s /bin/true copy",
  "script -qc 'rm victim' /dev/null",
  "watch -g rm victim",
  "strace -o /dev/null rm victim",
  "ltrace rm victim",
  "gdb -batch -ex 'shell rm victim'",
  "expect -c 'spawn rm victim; expect eof'",
  "screen -dm rm victim",
  "tmux new-session -d 'rm victim'",
  "at -f script.sh now",
  "batch",
  "crontab script.sh",
  "systemd-run rm victim",
  "dbus-run-session rm victim",
  "docker run -v .:/x alpine rm /x/victim",
  "less script.sh",
  "man -P 'rm victim' ls",
  "rg --pre ./script.sh x",
  "fd victim -x rm",
  "parallel rm ::: victim",
  "entr rm victim",
  "pkexec rm victim",
  "ld.so /bin/rm victim",
  "/lib64/ld-linux-x86-64.so.2 /bin/rm victim",
  "gcc -wrapper rm,victim script.c",
  "unlink victim",
  "shred -u victim",
  "./ls victim",
  "bin/ls victim",
  "printf -v PATH bin && ls",
  "printf -v 'a[$(rm victim)]' x",
  "test -v 'a[$(rm victim)]'",
  "compgen -C 'rm victim'",
  "complete -C 'rm victim' x",
  "mapfile -C 'rm victim' -c 1",
  "trap 'rm victim' EXIT",
  "eval rm victim",
  "exec rm victim",
  "command rm victim",
  "builtin eval rm victim",
  "coproc rm victim",
  "time rm victim",
  "! rm victim",
  "$(echo rm) victim",
  "`echo rm` victim",
  "a=rm; $a victim",
  `r$\{x}m victim`,
  "{ rm victim; }",
  "(rm victim)",
  "if true; then rm victim; fi",
  "cat <(rm victim)",
  "echo x > victim",
  "ls\nrm victim",
  "ls & rm victim",
  "/bin/r? victim",
  "/bin/{rm,} victim",
  "rm() { :; }; rm victim",
  "alias x=rm; x victim",
  "source script.sh",
  ". ./script.sh",
  "PATH=bin ls victim",
  "LD_PRELOAD=./x.so ls"
]

const modes: ReadonlyArray<PolicyMode> = ["read_only", "auto", "full_access"]

const question = (command: string, more: Partial<PolicyQuestion>): PolicyQuestion => ({
  tool_name: "bash",
  mutating: true,
  effect_class: "effect",
  provenance: "builtin",
  approval: "by_policy",
  contained: true,
  access: { command },
  arguments_hash: "0".repeat(64),
  mode: "full_access",
  rules: [],
  grants: [],
  workspace: "/w",
  now_ms: 0,
  ...more
})

const denyRm = [{ decision: "deny", tool: "bash", command: ["rm", "**"] }]
const directory = mkdtempSync(join(tmpdir(), "echs-programs-"))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

describe("under a rule against rm", () => {
  it.each(modes)("no line that runs it by another program is let through: %s", (mode) => {
    const found = removing.filter((line) => evaluate(question(line, { rules: denyRm, mode })).verdict === "allow")
    expect(found).toEqual([])
    reportCount(`lines that run a denied program, ${mode}`, removing.length)
  })

  it("each is asked about or denied for the evidence of a goal as well", () => {
    const mode = "full_access"
    const place = { rules: denyRm, workspace: "/w", nowMs: 0, contained: true, mode, grants: [] } as const
    for (const line of removing) expect(commandRuling(["sh", "-c", line], place).decision, line).toMatch(/^(ask|deny)$/)
    expect(commandRuling(["env", "rm", "x"], place).decision).toBe("ask")
    expect(commandRuling(["bash", "x.sh"], place).decision).toBe("ask")
  })

  it("a rule that asks is not passed either, and one that allows first is", () => {
    const asks = [{ decision: "ask", tool: "bash", command: ["rm", "**"] }]
    for (const line of removing) expect(evaluate(question(line, { rules: asks })).verdict, line).toBe("ask")
    const make = { decision: "allow", tool: "bash", command: ["make", "test"] }
    expect(evaluate(question("make test", { rules: [make, ...denyRm] })).verdict).toBe("allow")
    expect(evaluate(question("make test", { rules: [...denyRm, make] })).verdict).toBe("allow")
    for (const rule of [
      { ...make, command: ["make", "*"] },
      { ...make, command: ["make", "**"] }
    ])
      expect(evaluate(question("make test", { rules: [...denyRm, rule] })).verdict).toBe("ask")
    expect(evaluate(question("make test", { rules: [...denyRm, { decision: "allow", tool: "bash" }] })).verdict).toBe(
      "ask"
    )
    const paths = { decision: "deny", path: ["**/.env"] }
    expect(evaluate(question("make test", { rules: [...denyRm, paths, make] })).verdict).toBe("ask")
    expect(evaluate(question("make test; rm x", { rules: [paths, ...denyRm, make] })).verdict).toBe("deny")
    expect(evaluate(question("make test", {})).verdict).toBe("allow")
  })

  it("lines that really remove the file are among them", () => {
    let removed = 0
    for (const line of removing.slice(0, 60)) {
      writeFileSync(join(directory, "victim"), "x")
      writeFileSync(join(directory, "script.sh"), "#!/bin/sh\nrm -f victim\n", { mode: 0o755 })
      const name = /^\S+/u.exec(line)![0]
      if (["sudo", "doas", "su", "runuser", "run-parts", "start-stop-daemon", "chroot", "nsenter"].includes(name))
        continue
      spawnSync("bash", ["-c", line], { cwd: directory, stdio: "ignore", timeout: 5_000 })
      if (!existsSync(join(directory, "victim"))) removed += 1
    }
    expect(removed).toBeGreaterThan(20)
    reportCount("of them seen to remove a file", removed)
  })
})

describe("what is simple", () => {
  const simple = [
    ...[
      "ls -la",
      "cat a b",
      "grep -rn x .",
      "head -n 3 a | tail -n 1",
      "mkdir -p a/b && touch a/b/c",
      "echo rm victim"
    ],
    ...[
      "cp a b",
      "mv a b",
      "ln -s a b",
      "chmod +x a",
      "wc -l a",
      "sort -u a | uniq -c",
      "sort -k2,2 -c a",
      "diff -u a b"
    ],
    ...["cd src && ls", "pwd", "printf '%s' x", "date +%s", "/bin/ls", "/usr/bin/cat a", "sha256sum a", "jq . a.json"]
  ]

  it("runs as the mode says, whatever is denied about others", () => {
    for (const line of simple) {
      expect(evaluate(question(line, { rules: denyRm })).verdict, line).toBe("allow")
      expect(evaluate(question(line, { rules: denyRm, mode: "auto" })).verdict, line).toBe("ask")
    }
  })

  it("is asked about where other uses of the same program are denied", () => {
    const rules = [{ decision: "deny", command: ["rm", "-rf", "**"] }]
    const verdictOf = (line: string): string => evaluate(question(line, { rules })).verdict
    expect(verdictOf("rm -rf x")).toBe("deny")
    for (const line of ["rm -fr x", "rm -r -f x", "rm --recursive --force x", "/bin/rm x", "ls && rm x"])
      expect(verdictOf(line), line).toBe("ask")
    expect(verdictOf("ls -rf")).toBe("allow")
  })

  it("stays a person's to allow, exactly", () => {
    const rule = { decision: "allow", tool: "bash", command: ["make", "test"], workspace: "/w" }
    const grant = { tool_name: "bash", scope: "session", arguments_hash: "", expires_ms: null, rule } as const
    const asked = { rules: denyRm, grants: [grant] }
    expect(evaluate(question("make test", asked)).verdict).toBe("allow")
    expect(evaluate(question("make clean", asked)).verdict).toBe("ask")
  })
})
