// The names under which Claude Code knows what our tools do, so that hooks written for it match and find what they look
// for. A hook may use either name.
import { isAbsolute, join } from "node:path"
import type { CallState } from "../machine/State.ts"

const names: Readonly<Record<string, string>> = {
  bash: "Bash",
  read_file: "Read",
  write_file: "Write",
  edit_file: "Edit",
  apply_patch: "MultiEdit",
  list_files: "LS",
  grep: "Grep",
  fetch_url: "WebFetch",
  spawn_agent: "Task",
  ask_user: "AskUserQuestion",
  update_plan: "TodoWrite"
}

/** The tool under the other program's name; tools of MCP servers are `mcp__server__tool` there. */
export const claudeNameOf = (toolName: string, provenance: string | null): string =>
  (Object.hasOwn(names, toolName) ? names[toolName] : undefined) ??
  (provenance === "mcp" ? `mcp__${toolName}` : toolName)

export const matches = (matcher: RegExp | undefined, ...candidates: ReadonlyArray<string>): boolean =>
  matcher === undefined || candidates.some((candidate) => matcher.test(candidate))

/** The arguments, with the absolute path under the name where hooks look for it. */
export const claudeInputOf = (call: CallState, workspace: string): unknown => {
  const input = call.arguments
  if (typeof input !== "object" || input === null) return input
  const { path } = input as { readonly path?: unknown }
  if (typeof path !== "string") return input
  return { ...input, file_path: isAbsolute(path) ? path : join(workspace, path) }
}
