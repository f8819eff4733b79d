// A writer to be killed: appends single runes to the large log until `count` are acknowledged, says up to which event,
// and waits for its end. Arguments: directory, count, outstanding.

import { Runelog } from "#runelog/Runelog.ts"
import { Busy, EventIdOutOfOrder } from "#runelog/RunelogErrors.ts"
import { largeLogName } from "./largeLog.ts"
import { body } from "./settings.ts"

const [directory = "", countText = "", outstandingText = ""] = process.argv.slice(2)
const entries = [{ body }]

const log = await Runelog.open({ directory })
const last = (await log.head(largeLogName)) + Number(countText)
let next = (await log.head(largeLogName)) + 1

const appender = async (): Promise<void> => {
  while (next <= last) {
    const eventId = next
    next += 1
    try {
      await log.append(largeLogName, eventId, entries)
    } catch (error) {
      if (error instanceof EventIdOutOfOrder) next = error.expected
      else if (error instanceof Busy) next = Math.min(next, eventId)
      else throw error
      await log.ready()
    }
  }
}

await Promise.all(Array.from({ length: Number(outstandingText) }, appender))
process.stdout.write(`${last}\n`)
setInterval(() => undefined, 60_000)
