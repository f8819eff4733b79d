// What `echs repair` does: the documented repairs of the log engine, the journal first, then one damaged log after the
// other, each with a copy of what it takes away.

import { makeDiskNode } from "#runelog/disk/DiskNode.ts"
import { quarantineDirectory } from "#runelog/Paths.ts"
import { LogUnknown } from "#runelog/RunelogErrors.ts"
import { DAMAGED_SUFFIX, generationOf } from "#runelog/recovery/Manifest.ts"
import { repairJournal, repairLog } from "#runelog/verify/Repair.ts"
import type { RepairDone, RepairPlan } from "../cli/verbs/repair.ts"

export const repairData = async (directory: string, plan: RepairPlan): Promise<RepairDone> => {
  const done: Array<RepairDone["logs"][number]> = []
  // A start makes a manifest anew that cannot be read, and this is one.
  const settled = plan.journal || plan.manifest ? await repairJournal({ directory }) : undefined
  const journal = plan.journal ? settled : undefined
  await keepManifests(directory)
  for (const log of plan.logs) {
    try {
      const { copies, head } = await repairLog({ directory }, log)
      done.push({ log, head, copies })
    } catch (error) {
      // Opening the directory, which comes before every repair, may have settled it.
      if (!(error instanceof LogUnknown)) throw error
    }
  }
  return { logs: done, ...(journal === undefined ? {} : { journal }) }
}

/** A manifest that could not be read has been seen by now; it is kept with the rest. */
const keepManifests = async (directory: string): Promise<void> => {
  const disk = makeDiskNode()
  for (const { name } of await disk.list(directory)) {
    const isDamaged = name.endsWith(DAMAGED_SUFFIX) && generationOf(name.slice(0, -DAMAGED_SUFFIX.length)) !== undefined
    if (!isDamaged) continue
    await disk.makeDirectory(quarantineDirectory(directory))
    await disk.rename(`${directory}/${name}`, `${quarantineDirectory(directory)}/${name}`)
  }
}
