// Chooses who searches: ripgrep where it is installed, our own search where it is not or where it cannot be started.
import { ProcessNotStarted } from "../../../sandbox/process/ProcessErrors.ts"
import type { ProcessPort } from "../../../sandbox/process/ProcessPort.ts"
import { SandboxRefused } from "../../../sandbox/SandboxErrors.ts"
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
  const { name, search } = ripgrep(processes)
  return {
    name,
    search: (request) =>
      search(request).catch((error: unknown) => {
        if (error instanceof ProcessNotStarted || error instanceof SandboxRefused) return plainSearch.search(request)
        throw error
      })
  }
}
