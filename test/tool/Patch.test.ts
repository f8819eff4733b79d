// Goal: a patch of either form changes exactly what it says, in files as git itself would, or changes nothing and says
// where it does not fit. Method: real files; random edits whose diffs git and our own diff print; golden messages.
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { applyPatchTool } from "#src/tool/builtin/edit/ApplyPatch.ts"
import { unifiedDiff } from "#src/tool/builtin/edit/Diff.ts"
import { workspaceAccess } from "#src/tool/builtin/ToolSchema.ts"
import { previewOf } from "../support/tool/runTool.ts"
import { usePlace } from "../support/tool/ToolPlace.ts"

const place = usePlace()
const tool = applyPatchTool({ door: workspaceAccess({}) })
const apply = (patch: string) => place.run(tool, { patch })
const write = (name: string, text: string): void => writeFileSync(join(place.workspace, name), text)
const read = (name: string): string => readFileSync(join(place.workspace, name), "utf8")

const letters = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"

describe("a unified diff", () => {
  it("changes, adds, deletes and renames files at once", async () => {
    write("a.txt", letters)
    write("gone.txt", "bye\n")
    write("old name.txt", "same\n")
    const patch = `diff --git a/a.txt b/a.txt
index 1..2 100644
--- a/a.txt
+++ b/a.txt
@@ -2,3 +2,4 @@ some function
 two
-three
+THREE
+and a half
 four
diff --git a/new/file.txt b/new/file.txt
new file mode 100644
--- /dev/null
+++ b/new/file.txt
@@ -0,0 +1,2 @@
+first
+second
\\ No newline at end of file
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/old name.txt b/new name.txt
similarity index 100%
rename from old name.txt
rename to new name.txt
`
    expect(await apply(patch)).toEqual({
      status: "success",
      output: "changed a.txt\nadded new/file.txt\ndeleted gone.txt\ndeleted old name.txt\nadded new name.txt"
    })
    expect(read("a.txt")).toBe("one\ntwo\nTHREE\nand a half\nfour\nfive\nsix\nseven\neight\n")
    expect(read("new/file.txt")).toBe("first\nsecond")
    expect(read("new name.txt")).toBe("same\n")
    expect(readdirSync(place.workspace).sort()).toEqual(["a.txt", "new", "new name.txt"])
  })

  it.each([
    ["lines that have moved", "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n six\n-seven\n+SEVEN\n", "seven", "SEVEN"],
    ["counts that are wrong", "--- a.txt\n+++ a.txt\n@@ -2,9 +2,1 @@\n two\n-three\n+THREE\n", "three", "THREE"],
    [
      "space at the end of lines",
      "--- a/a.txt\n+++ b/a.txt\n@@ -2,2 +2,2 @@\n two  \n-three\t\n+THREE\n",
      "three",
      "THREE"
    ],
    ["a fence around it", "```diff\n--- a/a.txt\n+++ b/a.txt\n@@ -3 +3 @@\n-three\n+THREE\n```\n", "three", "THREE"]
  ])("is applied despite %s", async (_name, patch, from, to) => {
    write("a.txt", letters)
    expect(await apply(patch)).toMatchObject({ status: "success" })
    expect(read("a.txt")).toBe(letters.replace(from, to))
  })

  it("keeps the line endings of the file", async () => {
    write("a.txt", "one\r\ntwo\r\nthree\r\n")
    await apply("--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n")
    expect(read("a.txt")).toBe("one\r\nTWO\r\nthree\r\n")
  })

  it("that deletes a line which looks like a header is read by its counts", async () => {
    write("a.txt", "-- comment\n++ other\nend\n")
    await apply("--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,1 @@\n--- comment\n-++ other\n end\n")
    expect(read("a.txt")).toBe("end\n")
  })

  it("of random edits makes what git and our own diff say: 120 cases", async () => {
    let seed = Number(process.env["SEED"] ?? 20_261_116)
    console.info(`SEED=${seed}`)
    const below = (limit: number): number => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fff_ffff
      return (seed >>> 8) % limit
    }
    const someText = (): string =>
      Array.from({ length: below(30) }, () => "abcd"[below(4)]).join("\n") + (below(4) === 0 ? "" : "\n")
    const diffOf = (before: string, after: string, round: number): string => {
      if (round % 2 === 0) return unifiedDiff("f.txt", { before, after })
      write("x.old", before)
      write("x.new", after)
      const { stdout } = spawnSync("git", ["diff", "--no-index", "--no-color", `-U${below(4)}`, "x.old", "x.new"], {
        cwd: place.workspace,
        encoding: "utf8"
      })
      return stdout.replaceAll("x.old", "f.txt").replaceAll("x.new", "f.txt")
    }
    for (let round = 0; round < 120; round += 1) {
      const before = someText()
      const after = someText()
      if (before === after || before === "" || after === "") continue
      write("f.txt", before)
      const patch = diffOf(before, after, round)
      expect(await apply(patch), patch).toMatchObject({ status: "success" })
      expect(read("f.txt"), `${JSON.stringify(before)}\n${patch}`).toBe(after)
    }
  })
})

describe("the form with markers", () => {
  it("changes, adds, deletes and moves files at once", async () => {
    write("a.txt", letters)
    write("b.txt", "x\n")
    write("m.txt", "keep\nold\n")
    const patch = `*** Begin Patch
*** Update File: a.txt
@@
 two
-three
+THREE
@@ six
-seven
+SEVEN
*** Add File: sub/new.txt
+hello
+
+world
*** Delete File: b.txt
*** Update File: m.txt
*** Move to: sub/m.txt
@@
-old
+new
*** End Patch`
    expect(await apply(patch)).toMatchObject({ status: "success" })
    expect(read("a.txt")).toBe(letters.replace("three", "THREE").replace("seven", "SEVEN"))
    expect(read("sub/new.txt")).toBe("hello\n\nworld\n")
    expect(read("sub/m.txt")).toBe("keep\nnew\n")
    expect(existsSync(join(place.workspace, "b.txt"))).toBe(false)
    expect(existsSync(join(place.workspace, "m.txt"))).toBe(false)
  })

  it("finds the place after its anchor, and the end of the file", async () => {
    write("a.txt", "class A\n  run\nclass B\n  run\n")
    await apply("*** Begin Patch\n*** Update File: a.txt\n@@ class B\n-  run\n+  walk\n*** End Patch\n")
    expect(read("a.txt")).toBe("class A\n  run\nclass B\n  walk\n")
    await apply("*** Begin Patch\n*** Update File: a.txt\n@@\n   walk\n+last\n*** End of File\n*** End Patch\n")
    expect(read("a.txt")).toBe("class A\n  run\nclass B\n  walk\nlast\n")
  })
})

describe("a patch that does not fit", () => {
  it.each([
    [
      "a hunk",
      "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n@@ -5,2 +5,2 @@\n five\n-sox\n+SIX\n",
      "a.txt: @@ -5,2 +5,2 @@: line 6 is “six”, the patch has “sox”"
    ],
    [
      "a hunk after the end",
      "--- a/a.txt\n+++ b/a.txt\n@@ -8,2 +8,1 @@\n eight\n-nine\n",
      "a.txt: @@ -8,2 +8,1 @@: the file ends before line 9, the patch has “nine”"
    ],
    [
      "a hunk with markers",
      "*** Begin Patch\n*** Update File: a.txt\n@@\n two\n-drei\n+3\n*** End Patch",
      "a.txt: hunk 1: line 3 is “three”, the patch has “drei”"
    ],
    [
      "a hunk that is nowhere",
      "*** Begin Patch\n*** Update File: a.txt\n@@\n-zero\n+0\n*** End Patch",
      "a.txt: hunk 1: “zero” is nowhere in the file"
    ],
    [
      "an anchor",
      "*** Begin Patch\n*** Update File: a.txt\n@@ nowhere\n-one\n+1\n*** End Patch",
      "a.txt: hunk 1 (@@ nowhere): “nowhere” is nowhere after line 0"
    ],
    ["a file", "--- a/no.txt\n+++ b/no.txt\n@@ -1 +1 @@\n-a\n+b\n", "no.txt: there is no such file"],
    [
      "a new file that is there",
      "*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch",
      "a.txt: it is there already"
    ]
  ])("in %s is refused as a whole, and says where", async (_name, patch, message) => {
    write("a.txt", letters)
    write("ok.txt", "ok\n")
    const both = patch.startsWith("***")
      ? patch.replace("*** End Patch", "*** Update File: ok.txt\n@@\n-ok\n+changed\n*** End Patch")
      : `${patch}--- a/ok.txt\n+++ b/ok.txt\n@@ -1 +1 @@\n-ok\n+changed\n`
    expect(await apply(both)).toEqual({
      status: "error",
      error: {
        code: "patch_failed",
        message: `the patch does not apply, and nothing was changed\n${message}`,
        retryable: false,
        source: "tool"
      }
    })
    expect(read("a.txt")).toBe(letters)
    expect(read("ok.txt")).toBe("ok\n")
  })

  it.each([
    ["", "the patch names no file"],
    ["hello", "the patch names no file"],
    ["@@ -1 +1 @@\n-a\n+b\n", "line 1 of the patch: a hunk without a file; begin with --- and +++"],
    ["*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+b\n", 'line 6 of the patch: "*** End Patch" is missing'],
    [
      "*** Begin Patch\nnonsense\n*** End Patch",
      'line 2 of the patch: expected "*** Add File:", "*** Update File:" or "*** Delete File:"'
    ],
    [
      "*** Begin Patch\n*** Update File: a.txt\n@@\nnonsense\n*** End Patch",
      "line 4 of the patch: a line of a hunk begins with a space, + or -"
    ],
    [
      "diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 0\n",
      "line 3 of the patch: binary patches cannot be applied"
    ]
  ])("because it is no patch says which line: %j", async (patch, message) => {
    write("a.txt", "a\n")
    expect(await apply(patch)).toMatchObject({ status: "error", error: { code: "patch_malformed", message } })
  })

  it("outside the workspace, or into git's own files, is refused as a whole", async () => {
    write("ok.txt", "ok\n")
    writeFileSync(join(place.outside, "secret"), "kept\n")
    symlinkSync("../secret", join(place.workspace, "link"))
    mkdirSync(join(place.workspace, ".git"))
    const first = "*** Begin Patch\n*** Update File: ok.txt\n@@\n-ok\n+changed\n"
    for (const [rest, code] of [
      ["*** Update File: ../secret\n@@\n-kept\n+lost\n", "outside_workspace"],
      ["*** Update File: link\n@@\n-kept\n+lost\n", "outside_workspace"],
      ["*** Delete File: link\n", "outside_workspace"],
      ["*** Add File: .git/hooks/pre-commit\n+evil\n", "protected_path"]
    ] as const)
      expect(await apply(`${first}${rest}*** End Patch`)).toMatchObject({
        status: "sandbox_violation",
        error: { code }
      })
    expect(read("ok.txt")).toBe("ok\n")
    expect(readFileSync(join(place.outside, "secret"), "utf8")).toBe("kept\n")
  })

  it("half-way through its writes is undone", async () => {
    write("a.txt", "a\n")
    write("d", "a file where a directory is needed\n")
    const patch =
      "*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+b\n*** Add File: n/x\n+x\n*** Add File: n/x/y\n+y\n*** End Patch"
    const outcome = await apply(patch)
    expect(outcome).toMatchObject({ status: "error", error: { code: "file_error" } })
    expect(outcome.error?.message).toContain("nothing was changed")
    expect(read("a.txt")).toBe("a\n")
    expect(existsSync(join(place.workspace, "n", "x"))).toBe(false)
  })
})

describe("a question about a patch", () => {
  it("shows the difference of every file", async () => {
    write("a.txt", "one\ntwo\n")
    const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+TWO\n*** Add File: b.txt\n+b\n*** End Patch"
    expect(await previewOf(tool, { patch }, { workspace: place.workspace })).toEqual({
      title: "apply a patch to 2 files",
      detail: "changed a.txt\nadded b.txt",
      diff: "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+b\n"
    })
    expect(tool.access({ patch })).toEqual({ reads: ["a.txt", "b.txt"], writes: ["a.txt", "b.txt"] })
    expect(tool.access({ patch: "nonsense" })).toEqual({ reads: ["."], writes: ["."] })
  })
})
