// `npm run test:clients -- [vitest arguments]`: runs the real Codex, Claude Code and opencode under ECHS, against the model server
// of the tests, in homes of their own. They are installed once, in the versions that are named here and with the Node of
// this project, into a cache folder outside the lockfile: under an older Node npm would choose older ones without a word.
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync } from "node:fs"
import { homedir } from "node:os"
import { delimiter, dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"

const programs = [
  { name: "codex", package: "@openai/codex", version: "0.166.0" },
  { name: "claude", package: "@anthropic-ai/claude-code", version: "2.1.325" },
  { name: "opencode", package: "opencode-ai", version: "1.18.33" }
]
const top = join(dirname(fileURLToPath(import.meta.url)), "..")
const setting = (name: string): string | undefined => process.env[name] || undefined
const cache = resolve(
  setting("ECHS_CLIENTS_CACHE") ?? join(setting("XDG_CACHE_HOME") ?? join(homedir(), ".cache"), "echs", "clients")
)
const bin = join(cache, "node_modules", ".bin")
const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}` }

const versionOf = (name: string): string | undefined => {
  const { stdout } = spawnSync(join(bin, name), ["--version"], { encoding: "utf8", env, timeout: 30_000 })
  return /\d+\.\d+\.\d+/.exec(stdout ?? "")?.[0]
}

const missing = programs.filter(({ name, version }) => !existsSync(join(bin, name)) || versionOf(name) !== version)
if (missing.length > 0) {
  mkdirSync(cache, { recursive: true })
  const wanted = programs.map((one) => `${one.package}@${one.version}`)
  const args = ["install", "--prefix", cache, "--no-audit", "--no-fund", ...wanted]
  if (spawnSync("npm", args, { cwd: cache, env, stdio: "inherit" }).status !== 0) throw new Error("npm install failed")
}

let isOther = false
for (const { name, version } of programs) {
  const got = versionOf(name)
  isOther ||= got !== version
  process.stdout.write(`${name} ${got ?? "does not run"} (wanted ${version}), Node ${process.version}\n`)
}
if (isOther) process.exitCode = 1
else {
  const vitest = join(top, "node_modules", "vitest", "vitest.mjs")
  const args = process.argv.slice(2).filter((one) => one !== "--")
  const run = spawnSync(process.execPath, [vitest, "run", "--mode", "clients", ...args], {
    cwd: top,
    env: { ...env, ECHS_CLIENTS_BIN: bin },
    stdio: "inherit"
  })
  process.exitCode = run.status ?? 1
}
