// Plain files: a JSON line per record, as agent tools commonly write them, and the design that the shared journal
// replaces, a file and a sync per conversation.
import { appendFileSync, closeSync, fsyncSync, openSync, rmSync } from "node:fs"
import { appendFile, type FileHandle, open } from "node:fs/promises"
import { join } from "node:path"
import { drive, nothing, repeat, type Subject, timed } from "./sampling.ts"
import { body, bodyBytes, conversationsKeyed } from "./settings.ts"

export type LineMode = "appendFile" | "appendFileSync"

export const lineName = (mode: LineMode, options: { readonly flush: boolean }): string =>
  `JSON lines, ${mode}, ${options.flush ? "flushed" : "not durable"}`

/** A JSON object that fills 256 bytes with its line end. */
const line = `{"text":"${"rune ".repeat(60).slice(0, bodyBytes - 12)}"}\n`

export const makeJsonLines = (directory: string, mode: LineMode, options: { readonly flush: boolean }): Subject => {
  const name = lineName(mode, options)
  const path = join(directory, `lines-${mode}-${options.flush}`)
  const { flush } = options
  return {
    name,
    prepare: nothing,
    sample: (seconds) =>
      mode === "appendFile"
        ? repeat(seconds, () => appendFile(path, line, { flush }).then(() => 1))
        : repeat(seconds, () => {
            appendFileSync(path, line, { flush })
            return 1
          }),
    // What was left to the kernel must not be written back during the sample of another.
    settle: async () => {
      const fd = openSync(path, "r+")
      fsyncSync(fd)
      closeSync(fd)
      rmSync(path)
    },
    close: nothing
  }
}

export const filePerConversationName = (outstanding: number): string =>
  `a file and a sync per conversation, ${outstanding} outstanding, 1,000 conversations`

export const makeFilePerConversation = (directory: string, outstanding: number): Subject => {
  const files: Array<FileHandle> = []
  let turn = 0
  const append = async (): Promise<void> => {
    const file = files[turn % files.length]!
    turn += 1
    await file.write(body)
    await file.datasync()
  }
  return {
    name: filePerConversationName(outstanding),
    prepare: async () => {
      for (let index = 0; index < conversationsKeyed; index++)
        files.push(await open(join(directory, `own-${index}`), "a"))
    },
    sample: (seconds) =>
      timed((latency, startedMs) => {
        const endMs = startedMs + seconds * 1000
        return drive({ outstanding, append, isOver: (nowMs) => nowMs >= endMs }, latency)
      }),
    settle: nothing,
    close: async () => {
      for (const file of files) await file.close()
    }
  }
}
