// A contender for a data directory. On "go RUN" it opens it, and if it becomes the writer appends one event before it says
// so; on "close" it gives the directory back. One line per answer: "owner", "locked", "closed" or what went wrong.
import { writeSync } from "node:fs"
import { Runelog } from "#runelog/Runelog.ts"
import { witnessBatch } from "./Witness.ts"
import { writerLimits } from "./writerLimits.ts"

const log = "race"
let runelog: Runelog | undefined

const say = (line: string): void => void writeSync(1, `${line}\n`)

const contend = async (run: number): Promise<void> => {
  try {
    runelog = await Runelog.open({ directory: process.argv[2]!, limits: writerLimits })
    const batchFirst = (await runelog.head(log)) + 1
    await runelog.append(log, batchFirst, witnessBatch({ log, run, batchFirst, batchSize: 1 }))
    say(`ack ${log} ${batchFirst} 1 ${run}`)
    say("owner")
  } catch (error) {
    const tag = (error as { readonly _tag?: string })._tag
    say(tag === "DirectoryLocked" ? "locked" : `failed ${String(error)}`)
  }
}

const obey = async (command: string): Promise<void> => {
  const [what, run] = command.split(" ")
  if (what === "go") await contend(Number(run))
  if (what !== "close") return
  await runelog?.close()
  runelog = undefined
  say("closed")
}

process.stdin.setEncoding("utf8").on("data", (text: string) => void obey(text.trim()))
say("ready")
