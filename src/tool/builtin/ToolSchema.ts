// What the definitions of built-in tools have in common: schemas of arguments, the facts of tools that only read, and the
// way to the workspace of a conversation.
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { WorkspaceChoice } from "../../sandbox/WorkspaceCheck.ts"
import type { Tool } from "../Tool.ts"
import { builtinLimits } from "./BuiltinLimits.ts"
import { type FileProblem, step } from "./FileWork.ts"
import { Workspace, type WorkspaceOptions } from "./Workspace.ts"

/** An argument that may be left out. */
export const optional = <S extends Schema.Top>(schema: S): Schema.optionalKey<S> => Schema.optionalKey(schema)

export const text = (description: string) => Schema.String.annotate({ description })

export const boundedText = (description: string, { maxLength }: { readonly maxLength: number }) =>
  text(description).check(Schema.isMinLength(1), Schema.isMaxLength(maxLength))

export const aPath = (description: string) => text(description).check(Schema.isMinLength(1))

export const flag = (description: string) => Schema.Boolean.annotate({ description })

/** A whole number within bounds. The description goes on the number itself: models see it before the bounds. */
export const whole = (
  description: string,
  { maximum, minimum }: { readonly minimum: number; readonly maximum?: number }
) => {
  const number = Schema.Number.annotate({ description }).check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(minimum))
  return maximum === undefined ? number : number.check(Schema.isLessThanOrEqualTo(maximum))
}

/** Changes nothing; may run beside others and again. */
export const looks = {
  effect_class: "pure",
  mutating: false,
  timeout_ms: builtinLimits.fileTimeoutMs
} as const satisfies Partial<Tool>

/** How the tools of a server reach the workspace of a conversation. */
export interface WorkspaceAccess {
  readonly open: (choice: WorkspaceChoice) => Effect.Effect<Workspace, FileProblem>
}

export const workspaceAccess = (options: WorkspaceOptions): WorkspaceAccess => ({
  open: (choice) => step(() => Workspace.open(choice, options))
})
