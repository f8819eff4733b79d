// `npm run test:nodes -- [VERSION…] [vitest arguments]`: runs the suite, or the tests that are named, on the other Node
// versions that the package admits. Each comes once from the npm package of this platform into a cache folder, outside
// the lockfile.
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync } from "node:fs"
import { homedir } from "node:os"
import { delimiter, dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"

const versions = ["22.19.0", "24.21.0"]
const top = join(dirname(fileURLToPath(import.meta.url)), "..")
/** A variable that is set to nothing counts as not set. */
const setting = (name: string): string | undefined => process.env[name] || undefined
const cache = resolve(
  setting("ECHS_NODES_CACHE") ?? join(setting("XDG_CACHE_HOME") ?? join(homedir(), ".cache"), "echs", "nodes")
)

const platform = `${process.platform === "win32" ? "win" : process.platform}-${process.arch}`
const packageName = platform === "darwin-arm64" ? `node-bin-${platform}` : `node-${platform}`

const installNode = (version: string): string => {
  const prefix = join(cache, version)
  const binary = join(prefix, "node_modules", packageName, "bin", process.platform === "win32" ? "node.exe" : "node")
  if (existsSync(binary)) return binary
  mkdirSync(prefix, { recursive: true })
  const args = [
    "install",
    "--prefix",
    prefix,
    "--no-save",
    "--no-package-lock",
    "--ignore-scripts",
    `${packageName}@${version}`
  ]
  const { status } = spawnSync("npm", args, { cwd: prefix, stdio: "inherit", shell: process.platform === "win32" })
  if (status !== 0 || !existsSync(binary)) throw new Error(`npm could not install ${packageName}@${version}`)
  return binary
}

const runSuite = (version: string, args: ReadonlyArray<string>): boolean => {
  const binary = installNode(version)
  const vitest = join(top, "node_modules", "vitest", "vitest.mjs")
  // First in the path, so that what a test starts by name is this Node too.
  const env = { ...process.env, PATH: `${dirname(binary)}${delimiter}${process.env["PATH"] ?? ""}` }
  process.stdout.write(`\nNode ${version}\n`)
  return spawnSync(binary, [vitest, "run", ...args], { cwd: top, env, stdio: "inherit" }).status === 0
}

const given = process.argv.slice(2).filter((arg) => arg !== "--")
const chosen = given.filter((arg) => /^\d+\.\d+\.\d+$/.test(arg))
const rest = given.filter((arg) => !chosen.includes(arg))
const results = (chosen.length > 0 ? chosen : versions).map((version) => ({ version, passed: runSuite(version, rest) }))
for (const { version, passed } of results) process.stdout.write(`Node ${version}: ${passed ? "passed" : "failed"}\n`)
if (!results.every(({ passed }) => passed)) process.exitCode = 1
