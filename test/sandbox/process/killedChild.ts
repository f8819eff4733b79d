// Stands for a server that is killed. Arguments: its base; a mark for what it starts; the level; where programs are
// looked for. Starts a program and says so when that one says "ready", or at once when it never will.
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { detectSandbox } from "#src/sandbox/Detect.ts"
import { allowedEnvironment } from "#src/sandbox/Environment.ts"
import { ownerOf } from "#src/sandbox/process/Leftovers.ts"
import { makeProcesses } from "#src/sandbox/process/Processes.ts"
import type { SandboxLevel } from "#src/sandbox/SandboxPort.ts"
import { usualPath } from "../../support/sandbox.ts"

const [base = "", mark = "", level = "", slow = ""] = process.argv.slice(2)
const [workspace, data, home] = [join(base, "workspace"), join(base, "data"), join(base, "home")]
for (const directory of [workspace, data, home]) mkdirSync(directory, { recursive: true })
const levels = [level as SandboxLevel]
const detected = await detectSandbox({ dataDirectory: data, home, path: usualPath, levels })
/** The same sandbox, begun by a program that takes its time at the worst moment. */
const prepare: typeof detected.prepare = (request) => {
  const command = detected.prepare(request)
  return slow === "" ? command : { ...command, args: command.args.map((one) => (one.endsWith("/bwrap") ? slow : one)) }
}
const processes = makeProcesses({
  sandbox: { ...detected, prepare },
  environment: allowedEnvironment({ PATH: usualPath }),
  overflowDirectory: join(base, "overflow"),
  owner: ownerOf(data)
})
const script = `(setsid sleep ${mark} >/dev/null 2>&1 &) ; echo ready; sleep ${mark}`
void processes.run({
  argv: ["bash", "-c", script],
  directory: workspace,
  writable: [workspace],
  network: false,
  outputCharsMax: 100,
  signal: new AbortController().signal,
  onOutput: () => process.stdout.write("ready\n")
})
if (slow !== "") process.stdout.write("started\n")
