// The answer to a permission request in the format of Claude Code. Nothing to say is an empty object: its own dialog decides.
export type PermissionDecision =
  | { readonly _tag: "Allow"; readonly updatedInput?: unknown; readonly updatedPermissions?: ReadonlyArray<unknown> }
  | { readonly _tag: "Deny"; readonly message: string; readonly interrupt: boolean }
  | { readonly _tag: "Unsaid" }

const output = (decision: Readonly<Record<string, unknown>>): unknown => ({
  hookSpecificOutput: { hookEventName: "PermissionRequest", decision }
})

export const permissionAnswer = (decision: PermissionDecision): unknown => {
  if (decision._tag === "Unsaid") return {}
  if (decision._tag === "Deny") {
    const { interrupt, message } = decision
    return output({ behavior: "deny", message, ...(interrupt ? { interrupt } : {}) })
  }
  const { updatedInput, updatedPermissions } = decision
  return output({
    behavior: "allow",
    ...(updatedInput === undefined ? {} : { updatedInput }),
    ...(updatedPermissions === undefined ? {} : { updatedPermissions })
  })
}

/** What Claude Code offers to allow for the rest of its session. */
export const sessionSuggestions = (suggestions: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  suggestions.filter((one) => (one as { destination?: unknown } | null)?.destination === "session")
