// Chooses who searches: ripgrep where it is installed, our own search where it is not or where it cannot be started.
import * as Effect from "effect/Effect"
import type { ProcessPort } from "../../../sandbox/process/ProcessPort.ts"
import { plainSearch } from "./Plain.ts"
import type { SearchPort } from "./Port.ts"
import { hasProgram, ripgrep } from "./Ripgrep.ts"

export interface SearchOptions {
  readonly processes: ProcessPort
  /** Where programs are looked for, as in the variable PATH. */
  readonly path: string
}

export const makeSearch = ({ path, processes }: SearchOptions): SearchPort => {
  if (!hasProgram("rg", path)) return plainSearch
  const search = ripgrep(processes)
  const instead: SearchPort["search"] = (request) => plainSearch.search(request)
  return {
    name: "ripgrep",
    search: (request) =>
      Effect.catchTags(search(request), {
        ProcessNotStarted: () => instead(request),
        SandboxRefused: () => instead(request)
      })
  }
}
