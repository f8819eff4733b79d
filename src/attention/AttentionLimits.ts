// The limits of attention.
export const limits = {
  /** Conversations brought into memory for one list of what waits for a person, and how many at once. */
  conversationsMax: 10_000,
  lanes: 8,
  /** Changes that wait for the slowest follower; looking for more waits until there is room. */
  changesMax: 256
} as const
