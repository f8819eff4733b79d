// Why files were not recorded, or not brought back.
import * as Data from "effect/Data"
import type { WireCode } from "../../contract/WireFailure.ts"

export type CheckpointProblem =
  /** There is no git here, or one that cannot be used. */
  | "no_git"
  | "too_many_files"
  | "git_failed"
  /** The files are no longer what was looked at. */
  | "files_changed"
  | "not_found"

const wireCodes: { readonly [P in CheckpointProblem]: WireCode } = {
  no_git: "invalid_state",
  too_many_files: "limit_exceeded",
  git_failed: "invalid_state",
  files_changed: "invalid_state",
  not_found: "not_found"
}

export class CheckpointRefused extends Data.TaggedError("CheckpointRefused")<{
  readonly problem: CheckpointProblem
  readonly message: string
}> {
  get wireCode(): WireCode {
    return wireCodes[this.problem]
  }

  get wireData() {
    return { checkpoint: this.problem }
  }
}
