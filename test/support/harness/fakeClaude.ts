// Stands in for Claude Code: takes the hooks of `--settings` and fires them as a recorded session did, commands through a
// shell and questions over HTTP. Prints the answers it gets. `FAKE_SESSION` names the recording, `FAKE_AFTER` what it does
// when it is through: ends with a code, or stays.
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"

const { env } = process
const args = process.argv.slice(2)
if (args.includes("--version")) {
  process.stdout.write("2.1.325 (Claude Code)\n")
  process.exit(0)
}

interface Hook {
  readonly type: "command" | "http"
  readonly command: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

interface Settings {
  readonly hooks: Readonly<Record<string, ReadonlyArray<{ readonly hooks: ReadonlyArray<Hook> }>>>
}

const { hooks }: Settings = JSON.parse(readFileSync(args[args.indexOf("--settings") + 1] ?? "", "utf8"))

const fill = (text: string): string => text.replace(/\$(\w+)/g, (_, name: string) => env[name] ?? "")

const fire = async (body: { readonly hook_event_name: string; readonly [field: string]: unknown }): Promise<void> => {
  for (const { hooks: commands } of hooks[body.hook_event_name] ?? []) {
    for (const hook of commands) {
      if (hook.type === "command") {
        const run = spawnSync("/bin/sh", ["-c", hook.command], { input: JSON.stringify(body), encoding: "utf8" })
        if (run.status !== 0 || run.stdout !== "") process.stdout.write(`HOOK FAILED ${run.status} ${run.stderr}\n`)
      } else {
        const headers = Object.fromEntries(Object.entries(hook.headers).map(([name, value]) => [name, fill(value)]))
        const answer = await fetch(hook.url, {
          method: "POST",
          headers: { "content-type": "application/json", ...headers },
          body: JSON.stringify(body)
        }).then(
          (response) => response.text(),
          (error) => `no answer: ${error.message}`
        )
        process.stdout.write(`ANSWER ${answer}\r\n`)
      }
    }
  }
}

// A line that is typed fires the hook of a prompt.
process.stdin.setRawMode?.(true)
process.stdin.on("data", (bytes) => {
  // Under load the key that submits it comes in one piece with the text.
  const text = bytes.toString().replaceAll("\u001b[200~", "").replaceAll("\u001b[201~", "").replaceAll("\r", "")
  if (text.trim() !== "") void fire({ hook_event_name: "UserPromptSubmit", prompt_id: `typed ${text}`, prompt: text })
})

const lines = readFileSync(env["FAKE_SESSION"] ?? "", "utf8").split("\n")
for (const line of lines) if (line.includes("hook_event_name")) await fire(JSON.parse(line))
process.stdout.write("THROUGH\r\n")
if (env["FAKE_AFTER"] !== "stay") process.exit(Number(env["FAKE_AFTER"] ?? 0))
