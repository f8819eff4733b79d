// A process that takes and gives back the lock of a directory on command. Started by NodeLock.test.ts; also usable
// without a parent to talk to: then it tries once and prints the outcome.

import type { DiskLock } from "#runelog/disk/Disk.ts"
import { makeNodeLock } from "#runelog/disk/NodeLock.ts"

const directory = process.argv[2]!
const lock = makeNodeLock()
let held: DiskLock | undefined

const attempt = async () => {
  const outcome = await lock(directory)
  if (outcome._tag === "Held") return { held: false, owner: outcome.owner?.pid }
  held = outcome.lock
  return { held: true }
}

if (process.send === undefined) {
  console.log(JSON.stringify(await attempt()))
} else {
  process.on("message", async (message) => {
    if (message === "release") await held?.release()
    process.send!(message === "release" ? { released: true } : await attempt())
  })
  process.send({ ready: true })
}
