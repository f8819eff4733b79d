// What a server answers, held against the published schemas: every answer that a test gets over a plain socket has the shape
// that a generated client expects.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"

const root = join(import.meta.dirname, "..", "..", "..", "schemas")
const ajv = new Ajv2020({ strict: true, allErrors: true })
const compiled = new Map<string, ValidateFunction>()

/** The check of one schema file, compiled at its first use. */
export const schemaCheck = (path: string): ValidateFunction => {
  let check = compiled.get(path)
  if (check === undefined) {
    check = ajv.compile(JSON.parse(readFileSync(join(root, path), "utf8")))
    compiled.set(path, check)
  }
  return check
}

/** Throws when the value is not what the schema says. */
export const mustMatch = (path: string, value: unknown): void => {
  const check = schemaCheck(path)
  if (!check(value))
    throw new Error(`not what schemas/${path} says: ${ajv.errorsText(check.errors)}: ${JSON.stringify(value)}`)
}
