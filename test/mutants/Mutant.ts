// A mutant: one small lie in a guard of the source, and the test files that must notice it. The text it replaces stands
// exactly once in its file, which a test checks, so the list cannot fall behind the code without anyone knowing.
export interface Mutant {
  /** What the broken code does, as a fact in the present tense. */
  readonly name: string
  readonly file: string
  readonly find: string
  readonly replace: string
  /** Test files that catch it, the quickest first. */
  readonly tests: ReadonlyArray<string>
}

/** The source with the lie in it. Throws when the text to replace is missing or stands there more than once. */
export const mutate = (source: string, { file, find, name, replace }: Mutant): string => {
  const occurrences = source.split(find).length - 1
  if (occurrences !== 1) throw new Error(`mutant "${name}": its text stands ${occurrences} times in ${file}, not once`)
  return source.replace(find, () => replace)
}
