// Where promises of the store become effects: errors that are expected keep their type, everything else is a defect.
import * as Effect from "effect/Effect"

interface Tagged {
  readonly _tag: string
}

const tagOf = (error: unknown): string | undefined => {
  const tag = (error as Partial<Tagged> | null | undefined)?._tag
  return error instanceof Error && typeof tag === "string" ? tag : undefined
}

/** The tags of an error union, spelled out once and checked against the type. */
export const tagsOf = <E extends Tagged>(tags: { readonly [T in E["_tag"]]: true }): ReadonlySet<string> =>
  new Set(Object.keys(tags))

export const attempt = <E extends Tagged>(tags: ReadonlySet<string>) => {
  const isExpected = (error: unknown): error is E => tags.has(tagOf(error) ?? "")
  return <A>(start: () => Promise<A>): Effect.Effect<A, E> =>
    Effect.catch(Effect.tryPromise({ try: start, catch: (error) => error }), (error) =>
      isExpected(error) ? Effect.fail(error) : Effect.die(error)
    )
}
