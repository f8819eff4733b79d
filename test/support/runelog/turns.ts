// Time for tests over the simulated disk, where nothing takes any: one turn of the event loop at a time, counted, so
// that a promise that never settles is a fact and not a timeout.
import { Violation } from "./LogModel.ts"

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Far more turns than anything over the simulated disk needs. */
const turnsMax = 20_000

/** The promise, which must settle while the event loop turns. */
export const settled = async <A>(promise: Promise<A>, what: string | (() => string)): Promise<A> => {
  let done = false
  const note = () => {
    done = true
  }
  promise.then(note, note)
  await undefined
  for (let turns = 0; !done; turns++) {
    if (turns > turnsMax) throw new Violation(`${typeof what === "string" ? what : what()} does not settle`)
    await turn()
  }
  return promise
}
