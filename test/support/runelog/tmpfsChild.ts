// Runs the script of a full disk on a tmpfs of each size it is given, in a mount namespace of its own so that nothing
// stays mounted whatever happens. One JSON line per size.
import { execFileSync } from "node:child_process"
import { mkdirSync, writeSync } from "node:fs"
import { join } from "node:path"
import { runFullDisk } from "./FullDisk.ts"

const mountPoint = process.argv[2]!
const sizes = process.argv.slice(3).map(Number)

const mount = (options: string): void =>
  void execFileSync("mount", ["-t", "tmpfs", "-o", options, "none", mountPoint], { stdio: "pipe" })

for (const bytes of sizes) {
  mkdirSync(mountPoint, { recursive: true })
  mount(`size=${bytes}`)
  const enlarge = () => mount(`remount,size=${bytes + 4 * 1024 * 1024}`)
  const outcome = await runFullDisk({ directory: join(mountPoint, "data"), enlarge }).catch((error: unknown) => ({
    error: String(error)
  }))
  execFileSync("umount", ["-l", mountPoint])
  writeSync(1, `${JSON.stringify({ bytes, ...outcome })}\n`)
}
