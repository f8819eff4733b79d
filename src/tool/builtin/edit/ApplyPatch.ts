// `apply_patch`: changes to several files that are made together or not at all. Every hunk is tried before anything is
// written; when a write fails half-way, what was written is put back.
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { defineTool } from "../../DefineTool.ts"
import type { Tool } from "../../Tool.ts"
import { failureOf, ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { type FileProblem, pure, told, whole } from "../FileWork.ts"
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

  /** Takes one file of the patch. */
  take(patch: FilePatch): Effect.Effect<void, FileProblem> {
    const self = this
    return Effect.gen(function* () {
      const file = yield* self.fileAt(patch.path)
      if (patch.type === "add") return self.add(file, patch.content)
      if (file.after === undefined) return self.refuse(patch.path, "there is no such file")
      if (patch.type === "delete") {
        file.after = undefined
        return
      }
      const applied = applyHunks(file.after, patch.hunks)
      if (applied._tag === "Failed") {
        for (const problem of applied.problems) self.refuse(patch.path, problem)
        return
      }
      if (patch.moveTo === undefined) file.after = applied.text
      else yield* self.move(file, patch.moveTo, applied.text)
    })
  }

  private fileAt(path: string): Effect.Effect<Planned, FileProblem> {
    const key = path.replace(/^\.\//, "")
    const known = this.files.get(key)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.map(readTextFile(this.workspace, path), (before) => {
      const file: Planned = { path, before, after: before?.text }
      this.files.set(key, file)
      return file
    })
  }

  private add(file: Planned, content: string): void {
    if (file.after !== undefined) this.refuse(file.path, "it is there already")
    else file.after = content
  }

  private move(file: Planned, to: string, content: string): Effect.Effect<void, FileProblem> {
    return Effect.map(this.fileAt(to), (target) => {
      if (target.after !== undefined) return this.refuse(to, "it is there already")
      target.after = content
      file.after = undefined
    })
  }

  private refuse(path: string, problem: string): void {
    this.problems.push(`${path}: ${problem}`)
  }
}

const planOf = Effect.fnUntraced(function* (workspace: Workspace, given: PatchInput) {
  const plan = new Plan(workspace)
  for (const file of yield* pure(() => filesOf(given))) yield* plan.take(file)
  const { planned, problems } = plan
  if (problems.length === 0) return planned
  const message = `the patch does not apply, and nothing was changed\n${problems.join("\n")}`
  return yield* Effect.fail(new ToolFailure("patch_failed", message))
})

const write = (workspace: Workspace, { after, before, path }: Planned): Effect.Effect<unknown, FileProblem> => {
  if (after === undefined) return before === undefined ? Effect.void : removeFile(workspace, path, before.expected)
  const bytes = Buffer.from(after, "utf8")
  return bytes.length > builtinLimits.editBytesMax
    ? Effect.fail(new ToolFailure("too_large", `${path} would have more than ${builtinLimits.editBytesMax} bytes`))
    : replaceFile(workspace, path, bytes, before?.expected ?? "missing")
}

/** Puts back what was there before the file was written. */
const putBack = (workspace: Workspace, { before, path }: Planned): Effect.Effect<unknown, FileProblem> =>
  before !== undefined
    ? replaceFile(workspace, path, Buffer.from(before.text, "utf8"))
    : Effect.flatMap(readTextFile(workspace, path), (now) =>
        now === undefined ? Effect.void : removeFile(workspace, path, now.expected)
      )

/** Puts everything back, the last first; tells what could not be. */
const undo = (workspace: Workspace, written: ReadonlyArray<Planned>): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(
    Effect.forEach(written.toReversed(), (file) =>
      // Told together with why it was tried.
      Effect.match(putBack(workspace, file), { onFailure: () => [file.path], onSuccess: () => [] })
    ),
    (stuck) => stuck.flat()
  )

const apply = Effect.fnUntraced(function* (workspace: Workspace, given: PatchInput) {
  const planned = yield* planOf(workspace, given)
  const written: Array<Planned> = []
  for (const file of planned) {
    yield* Effect.catchCause(write(workspace, file), (cause) =>
      Effect.flatMap(undo(workspace, written), (stuck) => {
        const failure = failureOf(Cause.squash(cause), file.path)
        if (failure === undefined) return Effect.failCause(cause)
        const state = stuck.length === 0 ? "nothing was changed" : `could not be put back: ${stuck.join(", ")}`
        return Effect.fail(new ToolFailure(failure.code, `${failure.message}; ${state}`))
      })
    )
    written.push(file)
  }
  return { status: "success" as const, output: planned.map(lineOf).join("\n") || "the files are so already" }
})

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
      Effect.flatMap(door.open(place), (workspace) => planOf(workspace, given)).pipe(
        Effect.map((planned) => ({
          title: `apply a patch to ${planned.length} ${planned.length === 1 ? "file" : "files"}`,
          detail: planned.map(lineOf).join("\n"),
          diff: planned.map(({ after, before, path }) => unifiedDiff(path, { before: before?.text, after })).join("")
        })),
        Effect.orDie
      ),
    run: (given, context) =>
      whole(
        context,
        told(
          undefined,
          Effect.flatMap(door.open(context), (workspace) => apply(workspace, given))
        )
      )
  })
