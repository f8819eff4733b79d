// `apply_patch`: changes to several files that are made together or not at all. Every hunk is tried before anything is
// written; when a write fails half-way, what was written is put back.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { defineTool } from "../../DefineTool.ts"
import { promisedOutcome } from "../../PromiseWork.ts"
import type { Tool } from "../../Tool.ts"
import type { ToolOutcome } from "../../ToolPort.ts"
import { failureOf, ToolFailure, told } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { removeFile, replaceFile } from "../files/Replace.ts"
import { readTextFile, type TextFile } from "../files/TextFile.ts"
import { text, type WorkspaceAccess } from "../ToolSchema.ts"
import type { Workspace } from "../Workspace.ts"
import { applyHunks } from "./ApplyHunks.ts"
import { unifiedDiff } from "./Diff.ts"
import { readMarked } from "./MarkedPatch.ts"
import { type FilePatch, readPatch } from "./Patch.ts"
import { readUnified } from "./UnifiedPatch.ts"

/** A file before and after; nothing on one side when it appears or goes away. */
interface Planned {
  readonly path: string
  readonly before: TextFile | undefined
  after: string | undefined
}

const input = Schema.Struct({ patch: text("the patch") })
type PatchInput = typeof input.Type

const filesOf = ({ patch }: PatchInput): ReadonlyArray<FilePatch> =>
  readPatch(patch, { unified: readUnified, marked: readMarked })

/** What a patch would make of the files, without touching them. */
class Plan {
  private readonly workspace: Workspace
  private readonly files = new Map<string, Planned>()
  readonly problems: Array<string> = []

  constructor(workspace: Workspace) {
    this.workspace = workspace
  }

  get planned(): ReadonlyArray<Planned> {
    return [...this.files.values()].filter(({ after, before }) => before?.text !== after)
  }

  async take(patch: FilePatch): Promise<void> {
    const file = await this.fileAt(patch.path)
    if (patch.type === "add") return this.add(file, patch.content)
    if (file.after === undefined) return this.refuse(patch.path, "there is no such file")
    if (patch.type === "delete") {
      file.after = undefined
      return
    }
    const applied = applyHunks(file.after, patch.hunks)
    if (applied._tag === "Failed") {
      for (const problem of applied.problems) this.refuse(patch.path, problem)
      return
    }
    if (patch.moveTo === undefined) file.after = applied.text
    else await this.move(file, patch.moveTo, applied.text)
  }

  private async fileAt(path: string): Promise<Planned> {
    const key = path.replace(/^\.\//, "")
    const known = this.files.get(key)
    if (known !== undefined) return known
    const before = await readTextFile(this.workspace, path)
    const file: Planned = { path, before, after: before?.text }
    this.files.set(key, file)
    return file
  }

  private add(file: Planned, content: string): void {
    if (file.after !== undefined) this.refuse(file.path, "it is there already")
    else file.after = content
  }

  private async move(file: Planned, to: string, content: string): Promise<void> {
    const target = await this.fileAt(to)
    if (target.after !== undefined) return this.refuse(to, "it is there already")
    target.after = content
    file.after = undefined
  }

  private refuse(path: string, problem: string): void {
    this.problems.push(`${path}: ${problem}`)
  }
}

const planOf = async (workspace: Workspace, given: PatchInput): Promise<ReadonlyArray<Planned>> => {
  const plan = new Plan(workspace)
  for (const file of filesOf(given)) await plan.take(file)
  if (plan.problems.length > 0)
    throw new ToolFailure(
      "patch_failed",
      `the patch does not apply, and nothing was changed\n${plan.problems.join("\n")}`
    )
  return plan.planned
}

const write = async (workspace: Workspace, { after, before, path }: Planned): Promise<void> => {
  if (after === undefined) {
    if (before !== undefined) await removeFile(workspace, path, before.expected)
  } else {
    const bytes = Buffer.from(after, "utf8")
    if (bytes.length > builtinLimits.editBytesMax)
      throw new ToolFailure("too_large", `${path} would have more than ${builtinLimits.editBytesMax} bytes`)
    await replaceFile(workspace, path, bytes, before?.expected ?? "missing")
  }
}

/** Puts back what was there; tells what could not be. */
const undo = async (workspace: Workspace, written: ReadonlyArray<Planned>): Promise<ReadonlyArray<string>> => {
  const stuck: Array<string> = []
  for (const { before, path } of [...written].reverse()) {
    try {
      if (before !== undefined) await replaceFile(workspace, path, Buffer.from(before.text, "utf8"))
      else {
        const now = await readTextFile(workspace, path)
        if (now !== undefined) await removeFile(workspace, path, now.expected)
      }
    } catch {
      // Told below, together with why it was tried.
      stuck.push(path)
    }
  }
  return stuck
}

const apply = async (workspace: Workspace, given: PatchInput): Promise<ToolOutcome> => {
  const planned = await planOf(workspace, given)
  const written: Array<Planned> = []
  for (const file of planned) {
    try {
      await write(workspace, file)
      written.push(file)
    } catch (error) {
      const failure = failureOf(error, file.path)
      const stuck = await undo(workspace, written)
      if (failure === undefined) throw error
      const state = stuck.length === 0 ? "nothing was changed" : `could not be put back: ${stuck.join(", ")}`
      throw new ToolFailure(failure.code, `${failure.message}; ${state}`)
    }
  }
  return { status: "success", output: planned.map(lineOf).join("\n") || "the files are so already" }
}

const lineOf = ({ after, before, path }: Planned): string =>
  `${before === undefined ? "added" : after === undefined ? "deleted" : "changed"} ${path}`

const pathsOf = (given: PatchInput): ReadonlyArray<string> => {
  try {
    return filesOf(given).flatMap((file) =>
      file.type === "update" && file.moveTo !== undefined ? [file.path, file.moveTo] : [file.path]
    )
  } catch (error) {
    // It will be refused for what it is; until then it might write anywhere.
    if (error instanceof ToolFailure) return ["."]
    throw error
  }
}

export const applyPatchTool = ({ door }: { readonly door: WorkspaceAccess }): Tool =>
  defineTool({
    effect_class: "effect",
    mutating: true,
    timeout_ms: builtinLimits.fileTimeoutMs,
    name: "apply_patch",
    description:
      'Applies a patch to files of the workspace: a unified diff, or the form between "*** Begin Patch" and "*** End Patch" with "*** Add File:", "*** Update File:" and "*** Delete File:". When one hunk does not apply, nothing is changed.',
    input,
    access: (given) => ({ reads: pathsOf(given), writes: pathsOf(given) }),
    preview: (given, place) =>
      Effect.promise(async () => {
        const planned = await planOf(await door.open(place), given)
        return {
          title: `apply a patch to ${planned.length} ${planned.length === 1 ? "file" : "files"}`,
          detail: planned.map(lineOf).join("\n"),
          diff: planned.map(({ after, before, path }) => unifiedDiff(path, { before: before?.text, after })).join("")
        }
      }),
    run: (given, context) =>
      promisedOutcome(context, (place) => told(undefined, async () => apply(await door.open(place), given)))
  })
