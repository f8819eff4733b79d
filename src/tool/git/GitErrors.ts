// Why git was not run, or not for what was asked.

export type GitRefusal = "not_a_repository" | "git_failed"

export class GitRefused extends Error {
  override readonly name = "GitRefused"
  readonly _tag = "GitRefused"
  readonly code: GitRefusal

  constructor(code: GitRefusal, message: string) {
    super(message)
    this.code = code
  }
}
