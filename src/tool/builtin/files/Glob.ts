// Patterns of file names as .gitignore and searches write them: `*`, `?`, `[a-z]`, `**`, `\`. Matching takes time in
// proportion to pattern times name, whatever the pattern: nothing is tried twice over.

type Matches<P, N> = (pattern: P, name: N) => boolean

/** Matches a list against a list of patterns, in which a star stands for any number of items. */
const matchList = <P, N>(
  patterns: ReadonlyArray<P>,
  names: ArrayLike<N>,
  options: { readonly isStar: (pattern: P) => boolean; readonly matches: Matches<P, N> }
): boolean => {
  let pattern = 0
  let name = 0
  let star = -1
  let resume = 0
  while (name < names.length) {
    const current = patterns[pattern]
    if (pattern < patterns.length && options.isStar(current as P)) {
      star = pattern
      pattern += 1
      resume = name
    } else if (pattern < patterns.length && options.matches(current as P, names[name] as N)) {
      pattern += 1
      name += 1
    } else if (star >= 0) {
      // The last star takes one more; an earlier one could not do better.
      resume += 1
      name = resume
      pattern = star + 1
    } else return false
  }
  while (pattern < patterns.length && options.isStar(patterns[pattern] as P)) pattern += 1
  return pattern === patterns.length
}

type Token = "*" | "?" | { readonly one: string } | { readonly set: ReadonlyArray<string>; readonly negated: boolean }

/** The end of a set that begins at the bracket; -1 when it is never closed. */
const setEnd = (pattern: string, start: number): number => {
  const first = pattern[start + 1] === "!" || pattern[start + 1] === "^" ? start + 2 : start + 1
  return pattern.indexOf("]", first + 1)
}

const setOf = (body: string): Token => {
  const negated = body.startsWith("!") || body.startsWith("^")
  const chars = [...(negated ? body.slice(1) : body)]
  const set: Array<string> = []
  for (let index = 0; index < chars.length; index += 1) {
    if (chars[index + 1] === "-" && index + 2 < chars.length) {
      set.push(`${chars[index]}${chars[index + 2]}`)
      index += 2
    } else set.push(`${chars[index]}${chars[index]}`)
  }
  return { set, negated }
}

const tokensOf = (pattern: string): ReadonlyArray<Token> => {
  const tokens: Array<Token> = []
  for (let index = 0; index < pattern.length; index += 1) {
    const char = pattern.charAt(index)
    const end = char === "[" ? setEnd(pattern, index) : -1
    if (char === "*" || char === "?") tokens.push(char)
    else if (end > 0) {
      tokens.push(setOf(pattern.slice(index + 1, end)))
      index = end
    } else if (char === "\\" && index + 1 < pattern.length) {
      index += 1
      tokens.push({ one: pattern.charAt(index) })
    } else tokens.push({ one: char })
  }
  return tokens
}

const matchesToken: Matches<Token, string> = (token, char) => {
  if (token === "?") return true
  if (token === "*") return false
  if ("one" in token) return token.one === char
  const isIn = token.set.some((range) => range.charAt(0) <= char && char <= range.charAt(range.length - 1))
  return isIn !== token.negated
}

type Segment = "**" | ReadonlyArray<Token>

const matchesSegment: Matches<Segment, string> = (segment, name) =>
  segment !== "**" && matchList(segment, name, { isStar: (token) => token === "*", matches: matchesToken })

export interface Glob {
  /** The path is relative to where the pattern was written, with forward slashes. */
  readonly matches: (path: string) => boolean
}

/** A pattern without a slash matches a name at any depth; one with a slash matches from where it was written. */
export const makeGlob = (pattern: string): Glob => {
  const trimmed = pattern.replace(/^\//, "")
  const isAnchored = trimmed.length < pattern.length || trimmed.includes("/")
  const written: ReadonlyArray<Segment> = trimmed
    .split("/")
    .map((segment) => (segment === "**" ? segment : tokensOf(segment)))
  const endsOpen = written.length > 1 && written.at(-1) === "**"
  const segments: ReadonlyArray<Segment> = [
    ...(isAnchored ? [] : (["**"] as const)),
    ...written.slice(0, endsOpen ? -1 : undefined),
    // What is inside, and not the directory itself.
    ...(endsOpen ? ([tokensOf("*"), "**"] as const) : [])
  ]
  return {
    matches: (path) =>
      matchList(segments, path.split("/"), { isStar: (segment) => segment === "**", matches: matchesSegment })
  }
}

const alternativesMax = 64

/** `*.{ts,js}` as the patterns it stands for. */
export const expandBraces = (pattern: string): ReadonlyArray<string> => {
  const parts = /^(.*?)\{([^{}]*)\}(.*)$/s.exec(pattern)
  if (parts === null) return [pattern]
  const [, before = "", inside = "", after = ""] = parts
  return inside
    .split(",")
    .flatMap((one) => expandBraces(`${before}${one}${after}`))
    .slice(0, alternativesMax)
}
