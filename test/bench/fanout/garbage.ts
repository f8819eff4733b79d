// Garbage is collected when a benchmark says so, not when it happens to be noticed.
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

setFlagsFromString("--expose-gc")
export const collectGarbage: () => void = runInNewContext("gc")
