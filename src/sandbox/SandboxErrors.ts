// Why a command was not started in the sandbox: it asked for something that cannot be held.

export type RefusalCode =
  | "not_absolute"
  | "unreadable"
  | "not_there"
  | "too_wide"
  | "too_many"
  | "link"
  | "led_astray"
  | "bad_text"

export class SandboxRefused extends Error {
  override readonly name = "SandboxRefused"
  readonly _tag = "SandboxRefused"
  readonly code: RefusalCode
  readonly path: string

  constructor(code: RefusalCode, path: string, fact: string) {
    super(`${path}: ${fact}`)
    this.code = code
    this.path = path
  }
}
