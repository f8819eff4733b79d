// What is known of the built-in tools without a server: what their arguments say they would touch. None of them can run
// from here.

import { readPolicyFile } from "../policy/PolicyFile.ts"
import { type KnownTools, PolicyReplay } from "../policy/PolicyReplay.ts"
import type { ProcessPort } from "../sandbox/process/ProcessPort.ts"
import { workspaceTools } from "../tool/builtin/Builtin.ts"
import { makeFetchUrl } from "../tool/builtin/fetch/FetchUrl.ts"
import { makeAskUser } from "../tool/builtin/question/AskUser.ts"
import { makeBash } from "../tool/builtin/shell/Bash.ts"

const refuse = (): Promise<never> => Promise.reject(new Error("nothing runs here"))
const noProcesses: ProcessPort = { run: refuse, start: refuse, close: async () => undefined }

export const knownTools = (): KnownTools => {
  const files = workspaceTools({ ownDirectories: [], blobs: undefined, processes: noProcesses, path: "", home: "/" })
  const all = [...files, makeBash({ processes: noProcesses }).tool, makeFetchUrl(), makeAskUser()]
  const byName = new Map(all.map((tool) => [tool.name, tool]))
  return (name) => byName.get(name)
}

export { PolicyReplay, readPolicyFile }
