// What can be completed at the cursor: a command at the beginning of the text, a file after `@`. Pure: the names come
// from the caller.

export interface Candidate {
  readonly name: string
  readonly about: string
}

export interface Completion {
  /** Where the word begins that a candidate replaces. */
  readonly from: number
  readonly candidates: ReadonlyArray<Candidate>
}

export const shownMax = 6
const none: Completion = { from: 0, candidates: [] }

/** Names that begin with the word, then those whose last part does, then those that contain it. */
const fitting = (word: string, names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const wanted = word.toLowerCase()
  const rank = (name: string): number => {
    const own = name.toLowerCase()
    if (own.startsWith(wanted)) return 0
    if (own.slice(own.lastIndexOf("/") + 1).startsWith(wanted)) return 1
    return own.includes(wanted) ? 2 : 3
  }
  return names
    .map((name) => ({ name, rank: rank(name) }))
    .filter((one) => one.rank < 3)
    .toSorted((left, right) => left.rank - right.rank || left.name.length - right.name.length)
    .slice(0, shownMax)
    .map(({ name }) => name)
}

export const complete = (
  text: string,
  cursor: number,
  known: { readonly commands: ReadonlyArray<Candidate>; readonly files: () => ReadonlyArray<string> }
): Completion => {
  const before = text.slice(0, cursor)
  const command = /^\/([\w-]*)$/.exec(before)
  if (command !== null) {
    const candidates = known.commands.filter(({ name }) => name.startsWith(command[1] ?? ""))
    return { from: 1, candidates: candidates.slice(0, shownMax * 3) }
  }
  const file = /(?:^|\s)@([^\s@]*)$/.exec(before)
  if (file === null) return none
  const word = file[1] ?? ""
  return { from: cursor - word.length, candidates: fitting(word, known.files()).map((name) => ({ name, about: "" })) }
}

/** Files that a message names as `@path`. */
export const mentions = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/(?:^|\s)@([^\s@]+)/g)].map(([, path = ""]) => path)

export const isImage = (path: string): boolean => /\.(png|jpe?g|gif|webp)$/i.test(path)
