// The name that somebody most likely meant, for messages about one that does not exist.

/** How many characters have to be put in, left out or changed to make one text of the other. */
export const distance = (left: string, right: string): number => {
  let row = Array.from({ length: right.length + 1 }, (_, at) => at)
  for (const [at, character] of [...left].entries()) {
    const next = [at + 1]
    for (let to = 1; to <= right.length; to += 1) {
      const changed = (row[to - 1] ?? 0) + (right[to - 1] === character ? 0 : 1)
      next.push(Math.min(changed, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[right.length] ?? 0
}

/** The nearest of the names; of equally near ones the first. */
export const nearest = (name: string, known: Iterable<string>): string | undefined => {
  let found: { readonly name: string; readonly away: number } | undefined
  for (const one of known) {
    const away = distance(name.slice(0, 100).toLowerCase(), one.toLowerCase())
    if (found === undefined || away < found.away) found = { name: one, away }
  }
  return found?.name
}
