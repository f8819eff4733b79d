// Searches without any other program: a thread of this one walks the files, and is ended when nobody waits any more.
import { Worker } from "node:worker_threads"
import { type BuiltinErrorCode, ToolFailure } from "../BuiltinErrors.ts"
import type { SearchPort, SearchRequest, SearchResult } from "./Port.ts"

/** What the thread is given. */
export interface PlainWork {
  readonly root: string
  readonly ownDirectories: ReadonlyArray<string>
  readonly request: Omit<SearchRequest, "workspace" | "signal">
}

export type PlainAnswer =
  | { readonly _tag: "Found"; readonly result: SearchResult }
  | { readonly _tag: "Failed"; readonly code: BuiltinErrorCode; readonly message: string }

const memoryMaxMb = 256

/** Source and build lie side by side under the same names. */
const workerFile = (): URL =>
  new URL(import.meta.url.endsWith(".ts") ? "./PlainWorker.ts" : "./PlainWorker.js", import.meta.url)

const search = ({ signal, workspace, ...request }: SearchRequest): Promise<SearchResult> =>
  new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const work: PlainWork = { root: workspace.root, ownDirectories: workspace.ownDirectories, request }
    const worker = new Worker(workerFile(), {
      workerData: work,
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: memoryMaxMb }
    })
    const end = (settle: () => void): void => {
      signal.removeEventListener("abort", onAbort)
      void worker.terminate()
      settle()
    }
    const onAbort = (): void => end(() => reject(signal.reason))
    signal.addEventListener("abort", onAbort)
    worker.once("message", (answer: PlainAnswer) =>
      end(() =>
        answer._tag === "Found" ? resolve(answer.result) : reject(new ToolFailure(answer.code, answer.message))
      )
    )
    worker.once("error", (error) => end(() => reject(error)))
    worker.once("exit", () => end(() => reject(new Error("the search ended without an answer"))))
  })

export const plainSearch: SearchPort = { name: "built in", search }
