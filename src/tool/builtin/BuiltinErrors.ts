// Errors of the built-in tools as results carry them. None is retried by itself: the model is told, and decides.
import type { ErrorInfo } from "../../rune/kinds/shared.ts"
import type { ToolOutcome } from "../ToolPort.ts"

export type BuiltinErrorCode =
  | "invalid_arguments"
  | "no_workspace"
  | "workspace_refused"
  | "outside_workspace"
  | "protected_path"
  | "file_error"
  | "file_changed"
  | "not_text"
  | "too_large"
  | "blob_unknown"
  | "anchor_missing"
  | "anchor_ambiguous"
  | "patch_malformed"
  | "patch_failed"
  | "search_failed"
  | "not_a_repository"
  | "git_failed"
  | "nothing_to_commit"

export const toolError = (code: BuiltinErrorCode, message: string): ErrorInfo => ({
  code,
  message,
  retryable: false,
  source: "tool"
})

/** Ends a tool with an error the model is told. */
export class ToolFailure extends Error {
  override readonly name = "ToolFailure"
  readonly _tag = "ToolFailure"
  readonly code: BuiltinErrorCode

  constructor(code: BuiltinErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

const violations: ReadonlySet<BuiltinErrorCode> = new Set(["outside_workspace", "protected_path"])

/** What the file system may refuse in the course of things. Everything else is a defect of the runner. */
const refusals: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or directory",
  EISDIR: "it is a directory",
  ENOTDIR: "a part of the path is no directory",
  ENOTEMPTY: "the directory is not empty",
  EEXIST: "it is there already",
  EACCES: "the file system does not permit it",
  EPERM: "the file system does not permit it",
  EROFS: "the file system is read-only",
  ENAMETOOLONG: "the name is too long",
  ELOOP: "it is a link, or there are too many of them",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EFBIG: "the file is too large",
  EMFILE: "too many files are open",
  ENXIO: "it is no regular file",
  ETXTBSY: "it is being executed",
  EBUSY: "it is in use",
  EINVAL: "the file system does not take such a name"
}

export const failureOf = (error: unknown, path?: string): ToolFailure | undefined => {
  if (error instanceof ToolFailure) return error
  const { code = "" } = error as NodeJS.ErrnoException
  const reason = Object.hasOwn(refusals, code) ? refusals[code] : undefined
  if (reason === undefined) return undefined
  return new ToolFailure("file_error", path === undefined ? reason : `${path}: ${reason}`)
}

/** The result of a tool that failed. */
export const failedWith = ({ code, message }: ToolFailure): ToolOutcome => ({
  status: violations.has(code) ? "sandbox_violation" : "error",
  error: toolError(code, message)
})
