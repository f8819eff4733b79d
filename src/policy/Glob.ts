// Patterns of names and paths: `*` is anything within one part, `?` one character of it, `**` any number of whole parts.
// Matching takes time in proportion to pattern times text, whatever either looks like.
import { posix } from "node:path"

/** Whether one part of a path, or a name, fits. */
export const matchesName = (pattern: string, name: string): boolean => {
  let at = 0
  let from = 0
  let star = -1
  let retry = 0
  while (from < name.length) {
    if (pattern[at] === "*") {
      star = at
      retry = from
      at += 1
    } else if (at < pattern.length && (pattern[at] === "?" || pattern[at] === name[from])) {
      at += 1
      from += 1
    } else if (star !== -1) {
      retry += 1
      at = star + 1
      from = retry
    } else return false
  }
  while (pattern[at] === "*") at += 1
  return at === pattern.length
}

/** Which beginnings of the path fit the beginning of the pattern, carried from part to part. */
const advance = (
  reached: ReadonlyArray<boolean>,
  part: string,
  parts: ReadonlyArray<string>
): ReadonlyArray<boolean> => {
  if (part === "**") {
    let isReached = false
    return reached.map((one) => {
      isReached ||= one
      return isReached
    })
  }
  return [false, ...parts.map((name, index) => reached[index] === true && matchesName(part, name))]
}

const partsOf = (path: string): ReadonlyArray<string> => path.split("/").filter((part) => part !== "")

/** Whether an absolute path without `.` and `..` fits an absolute pattern. */
export const matchesPath = (pattern: string, path: string): boolean => {
  const parts = partsOf(path)
  let reached: ReadonlyArray<boolean> = [true, ...parts.map(() => false)]
  for (const part of partsOf(pattern)) reached = advance(reached, part, parts)
  return reached.at(-1) === true
}

/** The absolute form of a path that a model wrote; links are not followed, that is for whoever opens it. */
export const absolutePath = (path: string, workspace: string | undefined): string =>
  posix.resolve("/", workspace ?? "", path)

export const isInside = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory.endsWith("/") ? directory : `${directory}/`)

/** Whether something below a directory might fit the pattern: by the parts that come before the first with a star. */
export const mayMatchBelow = (pattern: string, directory: string): boolean => {
  const parts = partsOf(pattern)
  const open = parts.findIndex((part) => /[*?]/.test(part))
  const fixed = `/${(open === -1 ? parts : parts.slice(0, open)).join("/")}`
  return isInside(fixed, directory) || (open !== -1 && isInside(directory, fixed))
}

/** Whether a host fits: exactly, or as a name below the domain after `*.`; a port counts only where one is written. */
export const matchesHost = (pattern: string, host: string, port: number): boolean => {
  const { name, port: wanted } = splitHost(pattern)
  if (wanted !== undefined && wanted !== port) return false
  if (name === "*") return true
  return name.startsWith("*.") ? host.length > name.length - 1 && host.endsWith(name.slice(1)) : host === name
}

/** A pattern of a host and the port written after it, in lower case and without the dot of the root. */
export const splitHost = (pattern: string): { readonly name: string; readonly port: number | undefined } => {
  const found = /^(.*?)(?::(\d{1,5}))?$/.exec(pattern)
  const isAddress = pattern.startsWith("[") && pattern.endsWith("]")
  const name = isAddress ? pattern : (found?.[1] ?? pattern)
  const port = isAddress || found?.[2] === undefined ? undefined : Number(found[2])
  return { name: name.toLowerCase().replace(/\.$/, ""), port }
}
