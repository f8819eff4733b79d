// What can be wrong with a simulated disk besides the power: no room, with writes that stop in the middle, or errors of
// the device. A hazard knows which answers of the engine it explains; anything else is still a violation.

import { KIB } from "#runelog/RunelogLimits.ts"
import type { DiskSim, Operation } from "../disk/DiskSim.ts"

export type HazardKind = "full" | "io"

export interface Hazard {
  /** Called when a writer is about to start and before each thing its client does. */
  readonly befall: (disk: DiskSim) => void
  /** The disk is sound again from now on. */
  readonly pass: (disk: DiskSim) => void
  /** Answers that this hazard explains. */
  readonly explains: (tag: string, disk: DiskSim) => boolean
  /** The disk as it was before a directory sync failed cannot be had back by starting again. */
  readonly needsPowerCut: (disk: DiskSim) => boolean
}

type Chance = () => number

const below = (chance: Chance, bound: number): number => Math.floor(chance() * bound)

class FullDisk implements Hazard {
  readonly #chance: Chance
  #befell = false
  #isArmed = false

  constructor(chance: Chance) {
    this.#chance = chance
  }

  befall(disk: DiskSim): void {
    const draw = this.#chance()
    if (draw > 0.1) return
    this.#befell = true
    if (draw < 0.03) this.#failWrite(disk)
    else if (draw < 0.07) disk.capacityBytes = disk.usedBytes + below(this.#chance, 64 * KIB)
    else disk.capacityBytes = disk.usedBytes + below(this.#chance, 512 * KIB)
  }

  /** One at a time: a disk on which nothing at all can be overwritten is a broken one. */
  #failWrite(disk: DiskSim): void {
    if (this.#isArmed) return
    this.#isArmed = true
    const partialBytes = below(this.#chance, 9000)
    disk.failNext("write", { code: "ENOSPC", after: below(this.#chance, 4), partialBytes })
  }

  pass(disk: DiskSim): void {
    disk.capacityBytes = Number.POSITIVE_INFINITY
    disk.clearFaults()
    this.#isArmed = false
  }

  /** Also for a while after: the engine looks for room only when somebody asks for it. */
  explains(tag: string): boolean {
    return this.#befell && tag === "DiskFull"
  }

  needsPowerCut(): boolean {
    return false
  }
}

const failing: ReadonlyArray<Operation> = [
  "write",
  "sync",
  "sync",
  "sync",
  "syncDirectory",
  "create",
  "rename",
  "truncate"
]

class FailingDisk implements Hazard {
  readonly #chance: Chance
  #failing: Operation | undefined
  #disk: DiskSim | undefined

  constructor(chance: Chance) {
    this.#chance = chance
  }

  /** Once per disk. */
  befall(disk: DiskSim): void {
    if (this.#disk === disk || this.#chance() > 0.05) return
    this.#disk = disk
    this.#failing = failing[below(this.#chance, failing.length)]!
    const code = this.#failing.startsWith("sync") && this.#chance() < 0.2 ? "ENOSPC" : "EIO"
    disk.failNext(this.#failing, { code, after: below(this.#chance, 30), partialBytes: below(this.#chance, 9000) })
  }

  pass(disk: DiskSim): void {
    disk.clearFaults()
  }

  explains(tag: string, disk: DiskSim): boolean {
    return this.#disk === disk && ["WriterPoisoned", "DiskFailed", "DiskFull"].includes(tag)
  }

  needsPowerCut(disk: DiskSim): boolean {
    return this.#disk === disk && this.#failing === "syncDirectory"
  }
}

const none: Hazard = { befall: () => {}, pass: () => {}, explains: () => false, needsPowerCut: () => false }

export const makeHazard = (kind: HazardKind | undefined, chance: Chance): Hazard =>
  kind === undefined ? none : kind === "full" ? new FullDisk(chance) : new FailingDisk(chance)

/** The tag of an error of the engine, or the code of one of the system. */
export const tagOf = (error: unknown): string => {
  if (typeof error !== "object" || error === null) return ""
  if ("_tag" in error) return String(error._tag)
  return "code" in error ? String(error.code) : ""
}
