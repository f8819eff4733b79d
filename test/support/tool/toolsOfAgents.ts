// Every built-in tool and every tool of a role, for tests that look at what they say of themselves. None can run.
import { agentTools } from "#src/autonomy/tools/Agents.ts"
import { giveUpTool, makeSubmitPlan, makeUpdatePlan } from "#src/autonomy/tools/Plan.ts"
import { makeSubmitReview } from "#src/autonomy/tools/Review.ts"
import type { ProcessPort } from "#src/sandbox/process/ProcessPort.ts"
import { builtinTools } from "#src/tool/builtin/Builtin.ts"
import type { Tool } from "#src/tool/Tool.ts"

const refuse = (): Promise<never> => Promise.reject(new Error("nothing runs here"))
const processes: ProcessPort = { run: refuse, start: refuse, close: async () => undefined }
const goal = { runner: undefined, look: undefined as never, nowMs: () => 0, node: process.execPath }

export const toolsOfAgents = (): ReadonlyArray<Tool> => [
  ...builtinTools({ ownDirectories: [], blobs: undefined, processes, path: "", home: "/" }).tools,
  ...agentTools,
  makeSubmitPlan(goal),
  makeUpdatePlan(goal),
  giveUpTool,
  makeSubmitReview(goal)
]
