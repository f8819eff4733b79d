// What the definitions of built-in tools have in common: schemas of arguments, reading arguments that were checked, and
// the facts of tools that only look and of tools that write.

import type { WorkspaceChoice } from "../../sandbox/WorkspaceCheck.ts"
import type { Tool } from "../Tool.ts"
import { builtinLimits } from "./BuiltinLimits.ts"
import { Workspace, type WorkspaceOptions } from "./Workspace.ts"

export const text = (description: string, more: Readonly<Record<string, unknown>> = {}) => ({
  type: "string",
  description,
  ...more
})
export const flag = (description: string) => ({ type: "boolean", description })
export const whole = (description: string, range: { readonly minimum: number; readonly maximum?: number }) => ({
  type: "integer",
  description,
  ...range
})

export const takes = (properties: Readonly<Record<string, unknown>>, required: ReadonlyArray<string>) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false
})

export const aPath = (description: string) => text(description, { minLength: 1 })

/** Changes nothing; may run beside others and again. */
export const looks = {
  effect_class: "pure",
  mutating: false,
  timeout_ms: builtinLimits.fileTimeoutMs,
  provenance: "builtin"
} as const satisfies Partial<Tool>

/** Arguments as the schema has them, where an approver may have left them out. */
export const asText = (value: unknown, otherwise = ""): string => (typeof value === "string" ? value : otherwise)
export const asNumber = (value: unknown, otherwise: number): number => (typeof value === "number" ? value : otherwise)
export const asList = (value: unknown): ReadonlyArray<string> =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : []

/** How the tools of a server reach the workspace of a conversation. */
export interface WorkspaceAccess {
  readonly open: (choice: WorkspaceChoice) => Promise<Workspace>
}

export const workspaceAccess = (options: WorkspaceOptions): WorkspaceAccess => ({
  open: (choice) => Workspace.open(choice, options)
})
