// A real browser for tests, without a driver: it opens a page, lets its scripts run for a while, and prints what became
// of it.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Part, programRuns } from "./require.ts"

export const chromium: Part = {
  name: "chromium",
  isThere: () => programRuns("chromium", ["--version"]),
  remedy: "apt-get install chromium"
}

/** The document of a page after its scripts had five seconds of their time. */
export const dumpPage = async (url: string): Promise<string> => {
  const profile = mkdtempSync(join(tmpdir(), "echs-chromium-"))
  const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", `--user-data-dir=${profile}`]
  const child = spawn("chromium", [...args, "--virtual-time-budget=5000", "--dump-dom", url], {
    stdio: ["ignore", "pipe", "ignore"]
  })
  try {
    let text = ""
    child.stdout.setEncoding("utf8").on("data", (piece: string) => {
      text += piece
    })
    await once(child, "close")
    return text
  } finally {
    child.kill("SIGKILL")
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}
