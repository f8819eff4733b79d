/** Writes docs/machines from the tables. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { drawings, pageOf } from "./Diagram.ts"

const root = join(import.meta.dirname, "..", "..", "docs", "machines")
mkdirSync(root, { recursive: true })
for (const drawing of drawings) writeFileSync(join(root, `${drawing.name}.md`), pageOf(drawing))
console.log(`${drawings.length} diagrams written`)
