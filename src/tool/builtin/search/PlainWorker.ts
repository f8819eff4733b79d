// The thread of one built-in search. A pattern can take for ever on the wrong text; here it holds up nobody, and the
// thread can be ended.
import { parentPort, workerData } from "node:worker_threads"
import { failureOf, ToolFailure } from "../BuiltinErrors.ts"
import { Workspace } from "../Workspace.ts"
import type { PlainAnswer, PlainWork } from "./Plain.ts"
import { scan } from "./Scan.ts"

const answerOf = async ({ ownDirectories, request, root }: PlainWork): Promise<PlainAnswer> => {
  try {
    const workspace = await Workspace.open({ workspace: root }, { ownDirectories })
    if (workspace.root !== root) throw new ToolFailure("no_workspace", "the workspace was moved while it was searched")
    const result = await scan({ ...request, workspace })
    return { _tag: "Found", result }
  } catch (error) {
    const failure = failureOf(error, request.path)
    if (failure === undefined) throw error
    return { _tag: "Failed", code: failure.code, message: failure.message }
  }
}

parentPort?.postMessage(await answerOf(workerData as PlainWork))
