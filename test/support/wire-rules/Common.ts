// What the rules of the three formats share: reading JSON of unknown shape, names and ids, tools, images, documents, and
// the order of calls and their answers. Written from the documentation of the APIs; knows nothing of the product.

export type Json = Readonly<Record<string, unknown>>

/** Collects what is wrong, each with where it is. */
export class Findings {
  readonly list: Array<string> = []

  add(where: string, what: string): undefined {
    this.list.push(`${where}: ${what}`)
  }

  must(holds: boolean, where: string, what: string): undefined {
    if (!holds) this.add(where, what)
  }
}

export const isMap = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)
export const mapOf = (value: unknown): Json => (isMap(value) ? value : {})
export const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

export const isBlank = (value: unknown): boolean => typeof value !== "string" || value.trim() === ""

/** Fields of an object: those it must have, and those it may have; nothing else. */
export const checkFields = (
  found: Findings,
  where: string,
  value: Json,
  fields: { readonly must: ReadonlyArray<string>; readonly may?: ReadonlyArray<string> }
): undefined => {
  for (const name of fields.must) found.must(name in value, where, `${name} is missing`)
  const known = new Set([...fields.must, ...(fields.may ?? [])])
  for (const name of Object.keys(value)) found.must(known.has(name), where, `${name} is unknown`)
}

const namePattern = /^[a-zA-Z0-9_-]{1,64}$/
export const checkName = (found: Findings, where: string, name: unknown): undefined =>
  found.must(
    typeof name === "string" && namePattern.test(name),
    where,
    `${JSON.stringify(name)} is no name of a function`
  )

export const checkId = (found: Findings, where: string, id: unknown): undefined =>
  found.must(typeof id === "string" && namePattern.test(id), where, `${JSON.stringify(id)} is no id of a call`)

const toolsMax = 128
const refusedAtRoot = ["anyOf", "oneOf", "allOf", "not", "enum", "$ref"]

const checkLists = (found: Findings, where: string, schema: unknown): undefined => {
  if (Array.isArray(schema)) for (const one of schema) checkLists(found, where, one)
  if (!isMap(schema)) return
  if (schema["type"] === "array")
    found.must("items" in schema || "prefixItems" in schema, where, "a list without items")
  for (const [key, value] of Object.entries(schema)) {
    if (["enum", "const", "default", "examples", "required"].includes(key)) continue
    checkLists(found, where, value)
  }
}

/** Names unique and of the right characters, no more than are taken, schemas whose root is a plain object. */
export const checkTools = (
  found: Findings,
  tools: ReadonlyArray<{ readonly name: unknown; readonly description: unknown; readonly schema: unknown }>
): undefined => {
  found.must(tools.length > 0, "tools", "an empty list")
  found.must(tools.length <= toolsMax, "tools", `${tools.length} of them`)
  found.must(new Set(tools.map(({ name }) => name)).size === tools.length, "tools", "two of one name")
  for (const [index, { description, name, schema }] of tools.entries()) {
    const where = `tools[${index}]`
    checkName(found, where, name)
    found.must(typeof description === "string", where, "the description is no text")
    found.must(isMap(schema) && schema["type"] === "object", where, "the root of the schema is no object")
    found.must(isMap(mapOf(schema)["properties"]), where, "the schema has no properties")
    for (const key of refusedAtRoot) found.must(!(key in mapOf(schema)), where, `${key} at the root of the schema`)
    checkLists(found, where, schema)
  }
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

const beginnings: Readonly<Record<string, ReadonlyArray<string>>> = {
  "image/png": ["89504e470d0a1a0a"],
  "image/jpeg": ["ffd8ff"],
  "image/gif": ["474946383761", "474946383961"],
  "image/webp": ["52494646"],
  "application/pdf": ["255044462d"]
}

const imageBytesMax = 5_000_000

/** Bytes as base64 that are what their type says and not too many. */
export const checkBytes = (found: Findings, where: string, type: unknown, data: unknown): undefined => {
  const known = typeof type === "string" ? beginnings[type] : undefined
  if (known === undefined) return found.add(where, `${JSON.stringify(type)} is not taken`)
  if (typeof data !== "string" || data === "" || !base64.test(data)) return found.add(where, "the data is no base64")
  if (String(type).startsWith("image/")) found.must(data.length <= imageBytesMax, where, "the image is too large")
  const begin = Buffer.from(data.slice(0, 32), "base64").toString("hex")
  found.must(
    known.some((one) => begin.startsWith(one)),
    where,
    `the bytes are not ${type}`
  )
}

const dataUrl = /^data:([a-z]+\/[a-z0-9.+-]+);base64,(.*)$/s

/** An address of an image or a document: one that can be fetched, or the bytes themselves. */
export const checkAddress = (found: Findings, where: string, url: unknown, family: "image" | "document"): undefined => {
  const inside = typeof url === "string" ? dataUrl.exec(url) : null
  if (inside === null) {
    const isLink = family === "image" && typeof url === "string" && URL.canParse(url) && url.startsWith("https://")
    return found.must(isLink, where, "neither bytes nor an address")
  }
  const isRight = family === "image" ? inside[1]!.startsWith("image/") : inside[1] === "application/pdf"
  found.must(isRight, where, `${inside[1]} is no ${family}`)
  checkBytes(found, where, inside[1], inside[2])
}

/** Calls that wait for their answers: each is answered once, and nothing else comes between. */
export class Calls {
  private open: Array<string> = []
  private readonly seen = new Set<string>()
  private readonly found: Findings

  constructor(found: Findings) {
    this.found = found
  }

  get any(): boolean {
    return this.seen.size > 0
  }

  call(where: string, id: unknown): undefined {
    checkId(this.found, where, id)
    this.found.must(!this.seen.has(String(id)), where, `${String(id)} was used before`)
    this.seen.add(String(id))
    this.open.push(String(id))
  }

  answer(where: string, id: unknown): undefined {
    const at = this.open.indexOf(String(id))
    this.found.must(at >= 0, where, `${String(id)} answers no call that is open`)
    if (at >= 0) this.open.splice(at, 1)
  }

  /** Something else comes, or the end. */
  settled(where: string): undefined {
    this.found.must(this.open.length === 0, where, `no answer to ${this.open.join(", ")}`)
    this.open = []
  }
}

/** Arguments as a text: JSON of an object. */
export const checkArguments = (found: Findings, where: string, text: unknown): undefined => {
  try {
    found.must(typeof text === "string" && isMap(JSON.parse(text)), where, "the arguments are no object")
  } catch {
    found.add(where, "the arguments are no JSON")
  }
}
