// The process that is going to be killed: it appends to every log at once, for ever, and says what is durable as soon as
// it is. It never stops by itself.
import type { Terminal } from "../Verb.ts"
import { type DemoLog, demoEntry, demoLogs, showReceipt } from "./DemoLog.ts"

const batchEntriesMax = 4

export const writeUntilKilled = async (log: DemoLog, terminal: Terminal): Promise<never> => {
  await Promise.all(demoLogs.map((name) => writeOne(log, name, terminal)))
  throw new Error("the writer ran out of work")
}

const writeOne = async (log: DemoLog, name: string, terminal: Terminal): Promise<never> => {
  for (let next = (await log.head(name)) + 1; ; ) {
    const size = 1 + (next % batchEntriesMax)
    const entries = Array.from({ length: size }, (_, index) => demoEntry(name, next + index))
    await log.append(name, next, entries)
    next += size
    terminal.write(showReceipt(name, next - 1))
  }
}
