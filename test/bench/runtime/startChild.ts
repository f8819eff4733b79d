// Starts the runtime on a directory in a process of its own and says how long that took: from the start of the process,
// and of that the opening alone; and what its heap holds then. Closes in good order before it speaks. Argument: directory.
import { caughtUp } from "../../support/store/openStore.ts"
import { usedHeapBytes } from "./usedHeap.ts"

const importedFromMs = performance.now()
const { BenchRuntime } = await import("./openRuntime.ts")

const openedFromMs = performance.now()
const runtime = await BenchRuntime.open(process.argv[2] ?? "")
const { failed } = await runtime.recover()
const readyMs = performance.now()
if (failed.length > 0) throw failed[0]
await caughtUp(runtime.store)
const caughtUpMs = performance.now()
const heapBytes = await usedHeapBytes()
const conversations = runtime.store.catalog.count()
await runtime.close()

const report = {
  conversations,
  readyMs,
  importMs: openedFromMs - importedFromMs,
  openMs: readyMs - openedFromMs,
  caughtUpMs: caughtUpMs - openedFromMs,
  heapBytes
}
export type StartReport = typeof report
process.stdout.write(`${JSON.stringify(report)}\n`)
