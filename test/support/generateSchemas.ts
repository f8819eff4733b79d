/**
 * Writes schemas/rune, schemas/wire, schemas/answers, schemas/examples, schemas/operations.json, schemas/openapi.json, docs/RUNES.md, the table
 * of operations in docs/PROTOCOL.md and src/client/ReadingOperations.ts. A file named in schemas/released.json is never rewritten with other bytes: its shape needs a new version and a step in
 * src/rune/Upcaster.ts. `--release` adds every present file to that list.
 */
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { readingOperationsModule, withOperationTable } from "./operationPages.ts"
import { runesPage } from "./runesPage.ts"
import { schemaFiles } from "./schemaFiles.ts"

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "schemas")
const releasedPath = join(root, "released.json")
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

const files = schemaFiles()
const released: Record<string, string> = existsSync(releasedPath) ? JSON.parse(readFileSync(releasedPath, "utf8")) : {}

const changed = Object.entries(released).filter(([path, hash]) => sha256(files.get(path) ?? "") !== hash)
if (changed.length > 0) {
  console.error(`released schemas would change: ${changed.map(([path]) => path).join(", ")}`)
  process.exit(1)
}

for (const folder of ["rune", "wire", "answers", "examples"]) {
  mkdirSync(join(root, folder), { recursive: true })
  for (const name of readdirSync(join(root, folder))) {
    if (!files.has(`${folder}/${name}`)) rmSync(join(root, folder, name))
  }
}
for (const [path, text] of files) writeFileSync(join(root, path), text)

const top = join(root, "..")
const protocolPath = join(top, "docs", "PROTOCOL.md")
writeFileSync(join(top, "docs", "RUNES.md"), runesPage())
writeFileSync(protocolPath, withOperationTable(readFileSync(protocolPath, "utf8")))
writeFileSync(join(top, "src", "client", "ReadingOperations.ts"), readingOperationsModule())

if (process.argv.includes("--release")) {
  for (const [path, text] of files) if (path.startsWith("rune/")) released[path] = sha256(text)
}
writeFileSync(releasedPath, `${JSON.stringify(Object.fromEntries(Object.entries(released).sort()), null, 2)}\n`)
console.log(`${files.size} schema files written, ${Object.keys(released).length} released`)
