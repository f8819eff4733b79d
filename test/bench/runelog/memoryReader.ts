// Reads the whole large log in a process of its own and says how far its memory grew: resident bytes at the peak less
// those after opening and one page. Argument: directory.
import { Runelog } from "#runelog/Runelog.ts"
import { largeLogName, scanAll } from "./largeLog.ts"
import { peakResidentBytes } from "./peakMemory.ts"

const log = await Runelog.open({ directory: process.argv[2] ?? "" })
await log.read(largeLogName, { after: 0 })
const beforeBytes = process.memoryUsage.rss()
const runes = await scanAll(log)
const peakBytes = peakResidentBytes()
await log.close()
process.stdout.write(`${JSON.stringify({ runes, growthBytes: peakBytes - beforeBytes })}\n`)
