// A text in the person's own editor: written to a file for its owner alone, opened there, read back and removed.
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export const editText = (
  text: string,
  variables: Readonly<Record<string, string | undefined>>
): { readonly text: string } | { readonly issue: string } => {
  const editor = variables["VISUAL"] || variables["EDITOR"] || "vi"
  const directory = mkdtempSync(join(tmpdir(), "echs-edit-"))
  const path = join(directory, "message.md")
  try {
    writeFileSync(path, text, { mode: 0o600 })
    // As git does it: the variable may hold arguments.
    const run = spawnSync("sh", ["-c", `${editor} "$@"`, editor, path], { stdio: "inherit" })
    if (run.status !== 0) return { issue: `${editor} ended with ${run.status ?? run.signal}; the text is unchanged` }
    return { text: readFileSync(path, "utf8").replace(/\n$/, "") }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
