// What is known of the built-in tools without a server: what their arguments say they would touch. None of them can run
// from here.

import { readPolicyFile } from "../policy/PolicyFile.ts"
import { type KnownTools, PolicyReplay } from "../policy/PolicyReplay.ts"
import type { ProcessPort } from "../sandbox/process/ProcessPort.ts"
import { builtinTools } from "../tool/builtin/Builtin.ts"

const refuse = (): Promise<never> => Promise.reject(new Error("nothing runs here"))
const noProcesses: ProcessPort = { run: refuse, start: refuse, close: async () => undefined }

export const knownTools = (): KnownTools => {
  const options = { ownDirectories: [], blobs: undefined, processes: noProcesses, path: "", home: "/" }
  const byName = new Map(builtinTools(options).tools.map((tool) => [tool.name, tool]))
  return (name) => byName.get(name)
}

export { PolicyReplay, readPolicyFile }
