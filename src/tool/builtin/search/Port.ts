// Searching the text of files: what is asked and what is found, whoever does the work.
import type * as Effect from "effect/Effect"
import type { FileProblem } from "../FileWork.ts"
import type { Workspace } from "../Workspace.ts"

export interface SearchRequest {
  readonly workspace: Workspace
  /** File or directory, relative to the root of the workspace and without links; "" is the root. */
  readonly path: string
  /** A regular expression without look-around and back-references, or plain text. */
  readonly pattern: string
  readonly isPlainText: boolean
  readonly ignoreCase: boolean
  /** Only files whose path matches one of these; all when there is none. */
  readonly globs: ReadonlyArray<string>
  /** Lines before and after each match. */
  readonly contextLines: number
  readonly includeIgnored: boolean
  readonly matchesMax: number
}

export interface FoundLine {
  /** Relative to the root of the workspace. */
  readonly path: string
  readonly line: number
  /** Without its end; a long one is cut. */
  readonly text: string
  /** Or only near one. */
  readonly isMatch: boolean
}

export interface SearchResult {
  /** By path, then by line. */
  readonly lines: ReadonlyArray<FoundLine>
  readonly matches: number
  /** There are more. */
  readonly isCut: boolean
}

export interface SearchPort {
  readonly name: "ripgrep" | "built in"
  /** Fails with `search_failed` when the pattern cannot be understood. */
  readonly search: (request: SearchRequest) => Effect.Effect<SearchResult, FileProblem>
}
