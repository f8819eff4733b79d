// Replay of every log in a data directory that a test leaves behind: read back from the files, checked against the
// invariants, and folded in every way that has to agree. Called when the directory is torn down, whoever wrote it.
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Runelog } from "#runelog/Runelog.ts"
import type { ConversationId } from "#src/rune/Ids.ts"
import type { AnyRune } from "#src/rune/Rune.ts"
import { RuneStore } from "#src/store/runes/RuneStore.ts"
import { reportCount } from "../counts.ts"
import { checkRunes } from "./Logs.ts"

export interface CheckedDirectory {
  readonly logs: number
  readonly runes: number
  /** Logs with thinned ranges: their deltas are gone, so they are only read. */
  readonly thinned: number
}

const nothing: CheckedDirectory = { logs: 0, runes: 0, thinned: 0 }

/** Checks all conversations of a data directory that no process has open. */
export const checkDirectory = async (data: string): Promise<CheckedDirectory> => {
  if (!existsSync(join(data, "runelog"))) return nothing
  const runelog = await Runelog.open({ directory: data })
  try {
    const store = new RuneStore({ runelog })
    const found = { logs: 0, runes: 0, thinned: 0 }
    for (const id of await runelog.list()) {
      const runes: Array<AnyRune> = []
      let gaps = 0
      for await (const page of store.pagesNow(id, { after: 0 })) {
        runes.push(...page.runes)
        gaps += page.gaps.length
      }
      found.logs += 1
      found.runes += runes.length
      if (gaps > 0) found.thinned += 1
      else checkRunes(id as ConversationId, runes)
    }
    reportCount("server logs replayed, folds equal by hash", found.logs - found.thinned)
    reportCount("server runes checked against the invariants", found.runes)
    return found
  } finally {
    await runelog.close()
  }
}
