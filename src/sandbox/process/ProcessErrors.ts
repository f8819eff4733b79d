// Why a program was not started at all.

export type NotStartedCode = "not_found" | "too_many" | "sandbox_failed" | "sandbox_violation" | "closed" | "too_large"

export class ProcessNotStarted extends Error {
  override readonly name = "ProcessNotStarted"
  readonly _tag = "ProcessNotStarted"
  readonly code: NotStartedCode
  readonly program: string

  constructor(code: NotStartedCode, program: string, fact: string) {
    super(`${program} was not started: ${fact}`)
    this.code = code
    this.program = program
  }
}
