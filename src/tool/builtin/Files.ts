// Reading, listing and writing files of the workspace. A write is whole or not at all: beside the file first, then in
// its place.
import { constants } from "node:fs"
import { mkdir, open, readdir, rename, rm, writeFile } from "node:fs/promises"
import { dirname } from "node:path"
import type { ToolContext, ToolOutcome } from "../Port.ts"
import { type BuiltinErrorCode, toolError } from "./Errors.ts"
import { builtinLimits } from "./Limits.ts"
import { inside, OutsideWorkspace } from "./Workspace.ts"

type Input = Readonly<Record<string, unknown>>

const failed = (code: BuiltinErrorCode, message: string): ToolOutcome => ({
  status: "error",
  error: toolError(code, message)
})

const expected: ReadonlySet<string | undefined> = new Set([
  "ENOENT",
  "EISDIR",
  "ENOTDIR",
  "EACCES",
  "EPERM",
  "ENAMETOOLONG",
  "ELOOP",
  "ENOSPC"
])

/** Runs the work on a path of the workspace; what the file system refuses is told to the model. */
const onPath = async (
  input: Input,
  context: ToolContext,
  work: (path: string, shown: string) => Promise<ToolOutcome>
): Promise<ToolOutcome> => {
  const { path = "." } = input
  if (typeof path !== "string" || path === "" || path.includes("\0"))
    return failed("invalid_arguments", "path must be text")
  if (context.workspace === undefined) return failed("no_workspace", "this conversation has no workspace")
  try {
    return await work(await inside(context.workspace, path), path)
  } catch (error) {
    if (error instanceof OutsideWorkspace)
      return { status: "sandbox_violation", error: toolError("outside_workspace", error.message) }
    const { code, message } = error as NodeJS.ErrnoException
    if (!expected.has(code)) throw error
    return failed("file_error", `${path}: ${code === "ENOENT" ? "there is no such file" : message}`)
  }
}

export const listFiles = (input: Input, context: ToolContext): Promise<ToolOutcome> =>
  onPath(input, context, async (path) => {
    const entries = await readdir(path, { withFileTypes: true })
    const names = entries.map((entry) => `${entry.name}${entry.isDirectory() ? "/" : ""}`).sort()
    const shown = names.slice(0, builtinLimits.listEntriesMax)
    const rest = names.length - shown.length
    const output = shown.length === 0 ? "(empty)" : shown.join("\n")
    return { status: "success", output: rest === 0 ? output : `${output}\n… and ${rest} more` }
  })

export const readTextFile = (input: Input, context: ToolContext): Promise<ToolOutcome> =>
  onPath(input, context, async (path) => {
    // A pipe would hold the call until somebody writes to it.
    const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    try {
      const facts = await file.stat()
      if (!facts.isFile()) return failed("file_error", `${path} is no file`)
      const buffer = Buffer.alloc(Math.min(facts.size, builtinLimits.readBytesMax))
      const { bytesRead } = await file.read(buffer, 0, buffer.length, 0)
      const text = buffer.toString("utf8", 0, bytesRead)
      const rest = facts.size - bytesRead
      return { status: "success", output: rest <= 0 ? text : `${text}\n… ${rest} more bytes` }
    } finally {
      await file.close()
    }
  })

export const writeTextFile = (input: Input, context: ToolContext): Promise<ToolOutcome> =>
  onPath(input, context, async (path, shown) => {
    const { content } = input
    if (typeof content !== "string") return failed("invalid_arguments", "content must be text")
    const bytes = Buffer.byteLength(content)
    if (bytes > builtinLimits.writeBytesMax)
      return failed("too_large", `at most ${builtinLimits.writeBytesMax} bytes are written at once`)
    await mkdir(dirname(path), { recursive: true })
    const beside = `${path}.${context.call_id}.new`
    try {
      await writeFile(beside, content, { flag: "wx" })
      await rename(beside, path)
    } catch (error) {
      await rm(beside, { force: true })
      throw error
    }
    return { status: "success", output: `${shown}: ${bytes} bytes written` }
  })
