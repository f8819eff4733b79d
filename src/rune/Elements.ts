// Elements that exist by construction. Reading one that does not is a defect, and the error says which one.

/** Element of a list at an index that is known to be within it. */
export const elementAt = <A>(list: ArrayLike<A>, index: number): A => {
  const found = list[index]
  if (found === undefined) throw new RangeError(`there is no element ${index} in a list of ${list.length}`)
  return found
}

/** Value under a key that is known to be in the record. */
export const valueAt = <A>(record: Readonly<Record<string, A>>, key: string): A => {
  const found = record[key]
  if (found === undefined) throw new RangeError(`there is no value under ${key}`)
  return found
}

/** Value under a key that is known to be in the map. */
export const mappedTo = <K, V>(map: ReadonlyMap<K, V>, key: K): V => {
  const found = map.get(key)
  if (found === undefined) throw new RangeError(`there is no value under ${String(key)}`)
  return found
}

/** Removes the entry that was inserted first: maps and sets iterate in the order of insertion. */
export const dropOldest = <K>(kept: Map<K, unknown> | Set<K>): void => {
  for (const oldest of kept.keys()) {
    kept.delete(oldest)
    return
  }
}

/** Text up to the first occurrence of the separator. */
export const textBefore = (text: string, separator: string): string => {
  const end = text.indexOf(separator)
  return end === -1 ? text : text.slice(0, end)
}
