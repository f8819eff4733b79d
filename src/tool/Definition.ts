// What a tool that is not ours says it is, as one hash: whoever allows it for longer allows this tool and no other. A tool
// that is described, checked or reached differently afterwards is asked about again.
import { unknownDefinition } from "../contract/ToolAccess.ts"
import { canonicalHash } from "../machine/Canonical.ts"
import type { Tool } from "./Tool.ts"

/** Nothing for our own tools: these change with the version, and their arguments tell what they do. */
export const definitionOf = (tool: Tool): string | undefined => {
  if (tool.provenance === "builtin") return undefined
  if (tool.isUnknown === true) return unknownDefinition
  const { description, effect_class, mutating, name, origin = "", parameters, provenance } = tool
  return canonicalHash({ name, description, parameters, provenance, origin, effect_class, mutating })
}
