// Searches without any other program: a thread of this one walks the files, and is ended when nobody waits any more.
import { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"
import { type BuiltinErrorCode, ToolFailure } from "../BuiltinErrors.ts"
import type { FileProblem } from "../FileWork.ts"
import type { SearchPort, SearchRequest, SearchResult } from "./Port.ts"

/** What the thread is given. */
export interface PlainWork {
  readonly root: string
  readonly ownDirectories: ReadonlyArray<string>
  readonly request: Omit<SearchRequest, "workspace">
}

export type PlainAnswer =
  | { readonly _tag: "Found"; readonly result: SearchResult }
  | { readonly _tag: "Failed"; readonly code: BuiltinErrorCode; readonly message: string }

const memoryMaxMb = 256

/** Source and build lie side by side under the same names. */
const workerFile = (): URL =>
  new URL(import.meta.url.endsWith(".ts") ? "./PlainWorker.ts" : "./PlainWorker.js", import.meta.url)

const search = ({ workspace, ...request }: SearchRequest): Effect.Effect<SearchResult, FileProblem> =>
  Effect.callback((resume) => {
    const work: PlainWork = { root: workspace.root, ownDirectories: workspace.ownDirectories, request }
    const worker = new Worker(workerFile(), {
      workerData: work,
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: memoryMaxMb }
    })
    const end = (result: Effect.Effect<SearchResult, FileProblem>): void => {
      void worker.terminate()
      resume(result)
    }
    worker.once("message", (answer: PlainAnswer) =>
      end(
        answer._tag === "Found"
          ? Effect.succeed(answer.result)
          : Effect.fail(new ToolFailure(answer.code, answer.message))
      )
    )
    worker.once("error", (error) => end(Effect.die(error)))
    worker.once("exit", () => end(Effect.die(new Error("the search ended without an answer"))))
    return Effect.promise(() => worker.terminate())
  })

export const plainSearch: SearchPort = { name: "built in", search }
