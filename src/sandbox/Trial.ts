// One command in a sandbox that reports what it could do there. The sandbox holds when the report is exactly what was
// promised: silence is no promise kept.

import { existsSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { after } from "../contract/Timers.ts"
import { passGate } from "./LaunchGate.ts"
import { sandboxLimits } from "./SandboxLimits.ts"
import type { SandboxPort } from "./SandboxPort.ts"
import { spawnSandboxed } from "./Spawn.ts"

export interface Trial {
  readonly sandbox: SandboxPort
  /** Has `workspace`, and `hidden/secret`, which the sandbox was told to hide. */
  readonly directory: string
  readonly isFiltered: boolean
  readonly isDropped: boolean
}

const script = `
echo kept >"$1/workspace/file" && echo "writes workspace"
echo x >"$1/outside"
(echo x >/usr/echs-trial) 2>/dev/null && echo "writes system"
[ -e "$1/hidden/secret" ] && echo "sees hidden"
[ -r /etc/shadow ] && echo "reads shadow"
while read -r name value rest; do case $name in Seccomp:|NoNewPrivs:|CapEff:|CapBnd:) echo "$name $value";; esac; done </proc/self/status
while read -r name rest; do case $name in lo:|face|Inter-*) ;; *) echo "network $name";; esac; done </proc/net/dev
for process in /proc/[0-9]*; do echo "process \${process##*/}"; done
echo over`

const limitOutput = 65_536

interface Report {
  readonly lines: ReadonlyArray<string>
  readonly complaint: string
}

const report = ({ directory, sandbox }: Trial): Promise<Report> =>
  new Promise((resolve, reject) => {
    const workspace = join(directory, "workspace")
    const command = sandbox.prepare({
      argv: ["/bin/sh", "-c", script, "sh", directory],
      directory: workspace,
      writable: [workspace],
      network: false,
      environment: {}
    })
    const child = spawnSandboxed({ command, stdio: ["ignore", "pipe", "pipe"] })
    const said = { stdout: "", stderr: "" }
    const cancel = after(sandboxLimits.probeTimeoutMs, () => void child.kill("SIGKILL"))
    for (const stream of ["stdout", "stderr"] as const)
      child[stream]?.on("data", (bytes: Buffer) => {
        if (said[stream].length < limitOutput) said[stream] += bytes.toString("utf8")
      })
    const gate = command.gate === undefined ? undefined : passGate(child, command.gate)
    child.on("error", (error) => {
      cancel()
      reject(error)
    })
    child.on("close", async () => {
      cancel()
      const answer = await gate
      const reason = answer === undefined || answer._tag === "Open" ? undefined : answer.reason
      resolve({ lines: said.stdout.split("\n"), complaint: reason ?? said.stderr.trim() })
    })
  })

/** What was seen against what was promised; undefined when all of it holds. */
const judge = (trial: Trial, { complaint, lines }: Report): string | undefined => {
  if (!lines.includes("over")) return complaint.split("\n")[0] || "the trial did not end"
  const promised = [
    "writes workspace",
    "NoNewPrivs: 1",
    "CapEff: 0000000000000000",
    "CapBnd: 0000000000000000",
    ...(trial.isFiltered ? ["Seccomp: 2"] : [])
  ]
  const missing = promised.find((line) => !lines.includes(line))
  if (missing !== undefined) return `expected "${missing}"`
  const forbidden = /^(writes system|sees hidden|network )/
  const broken = lines.find((line) => forbidden.test(line) || (trial.isDropped && line === "reads shadow"))
  if (broken !== undefined) return `a command there ${broken}`
  if (existsSync(join(trial.directory, "outside"))) return "a command there writes outside"
  const processes = lines.filter((line) => line.startsWith("process ")).length
  if (processes > 3) return `a command there sees ${processes} processes`
  const file = join(trial.directory, "workspace", "file")
  const isOwners = statSync(file).uid === statSync(join(trial.directory, "workspace")).uid
  return isOwners && readFileSync(file, "utf8") === "kept\n" ? undefined : "what it writes is not the owner's"
}

/** Why the sandbox does not hold, undefined when it does. */
export const tryOut = async (trial: Trial): Promise<string | undefined> => {
  try {
    return judge(trial, await report(trial))
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
