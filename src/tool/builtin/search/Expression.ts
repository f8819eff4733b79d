// Regular expressions as ripgrep has them, made of those of this language: what only this language has is refused, so
// that a pattern means the same wherever it is searched for.
import { ToolFailure } from "../BuiltinErrors.ts"

const refused = /\(\?(?:=|!|<=|<!)/
const backReference = /^\\(?:[1-9]|k<)/

const hasBackReference = (pattern: string): boolean => {
  for (let at = pattern.indexOf("\\"); at >= 0; at = pattern.indexOf("\\", at + 2))
    if (backReference.test(pattern.slice(at, at + 3))) return true
  return false
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")

/** Forms of ripgrep that this language writes differently. */
const translated = (pattern: string): string =>
  pattern.replaceAll("(?P<", "(?<").replaceAll("\\A", "^").replaceAll("\\z", "$").replaceAll("[[:alpha:]]", "[A-Za-z]")

const compile = (source: string, flags: string): RegExp => {
  try {
    return new RegExp(source, `${flags}u`)
  } catch {
    // Characters that need no escape may be escaped nevertheless.
    return new RegExp(source, flags)
  }
}

export const expressionOf = (
  pattern: string,
  options: { readonly isPlainText: boolean; readonly ignoreCase: boolean }
): RegExp => {
  if (options.isPlainText) return compile(escaped(pattern), options.ignoreCase ? "i" : "")
  if (refused.test(pattern)) throw new ToolFailure("search_failed", "regex parse error: look-around is not supported")
  if (hasBackReference(pattern))
    throw new ToolFailure("search_failed", "regex parse error: back-references are not supported")
  const isInsensitive = pattern.startsWith("(?i)")
  const source = translated(isInsensitive ? pattern.slice(4) : pattern)
  try {
    return compile(source, options.ignoreCase || isInsensitive ? "i" : "")
  } catch (error) {
    throw new ToolFailure("search_failed", `regex parse error: ${(error as Error).message}`)
  }
}
