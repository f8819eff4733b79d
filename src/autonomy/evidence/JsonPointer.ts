// JSON pointers (RFC 6901): a value by the way to it.

const step = (value: unknown, name: string): unknown => {
  if (Array.isArray(value))
    return /^(0|[1-9]\d*)$/u.test(name) ? (value as ReadonlyArray<unknown>)[Number(name)] : undefined
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined
  return (value as Readonly<Record<string, unknown>>)[name]
}

/** The value at the end of the way; undefined where there is none. */
export const valueAt = (value: unknown, pointer: string): unknown => {
  const names = pointer === "" ? [] : pointer.slice(1).split("/")
  return names.map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~")).reduce(step, value)
}
