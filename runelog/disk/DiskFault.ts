// Errors as the operating system gives them, for the disks that are not one, and the range check that all
// of them share. A caller cannot tell by `code` which disk it talks to.

export type FaultCode =
  | "EACCES"
  | "EAGAIN"
  | "EBADF"
  | "EBUSY"
  | "EEXIST"
  | "EINVAL"
  | "EIO"
  | "EISDIR"
  | "EMFILE"
  | "ENAMETOOLONG"
  | "ENFILE"
  | "ENOENT"
  | "ENOMEM"
  | "ENOSPC"
  | "ENOTDIR"
  | "ENOTEMPTY"

const texts: { readonly [K in FaultCode]: string } = {
  EACCES: "permission denied",
  EAGAIN: "resource temporarily unavailable",
  EBADF: "bad file descriptor",
  EBUSY: "resource busy or locked",
  EEXIST: "file already exists",
  EINVAL: "invalid argument",
  EIO: "i/o error",
  EISDIR: "illegal operation on a directory",
  EMFILE: "too many open files",
  ENAMETOOLONG: "name too long",
  ENFILE: "file table overflow",
  ENOENT: "no such file or directory",
  ENOMEM: "not enough memory",
  ENOSPC: "no space left on device",
  ENOTDIR: "not a directory",
  ENOTEMPTY: "directory not empty"
}

/** An error with the fields and the message form of those from node:fs. */
export const systemError = (code: FaultCode, syscall: string, path: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`${code}: ${texts[code]}, ${syscall} '${path}'`), { code, syscall, path })

/** The `code` of an error from a disk, undefined for anything else. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined

/** The `syscall` of an error from a disk, undefined for anything else. */
export const syscallOf = (error: unknown): string | undefined =>
  error instanceof Error && "syscall" in error && typeof error.syscall === "string" ? error.syscall : undefined

/** Throws unless `bytes` holds `length` bytes at `offset` and `position` is a place in a file. */
export const checkRange = (bytes: Uint8Array, offset: number, length: number, position: number): void => {
  const inside = Number.isSafeInteger(offset) && Number.isSafeInteger(length) && offset >= 0 && length >= 0
  if (!inside || offset + length > bytes.length) {
    throw new RangeError(`offset ${offset} and length ${length} lie outside of ${bytes.length} bytes`)
  }
  checkPosition(position)
}

/** Throws unless `position` can be a place in a file or its length. */
export const checkPosition = (position: number): void => {
  if (!Number.isSafeInteger(position) || position < 0) throw new RangeError(`${position} is not a position in a file`)
}
