// Descriptors that are held open for nothing, to be given up when the process has no other left: whoever must open a
// file then still can, and the files of the log come before everything else that wants to be opened. One reserve serves
// a whole process, as the limit does.
import * as fs from "node:fs"
import { devNull } from "node:os"
import { codeOf } from "./DiskFault.ts"

/** Enough for what the engine opens at once: flushes in their lanes, a directory sync, a new journal file, a read. */
export const RESERVE_DESCRIPTORS = 8

type FileSystem = Pick<typeof fs, "closeSync" | "openSync">

export class DescriptorReserve {
  private readonly size: number
  private readonly fileSystem: FileSystem
  private readonly held: Array<number> = []

  constructor(size = RESERVE_DESCRIPTORS, fileSystem: FileSystem = fs) {
    this.size = size
    this.fileSystem = fileSystem
  }

  get left(): number {
    return this.held.length
  }

  /** Runs what needs a descriptor; where there is none, with one of the reserve. */
  async opening<A>(open: () => Promise<A>): Promise<A> {
    this.refill()
    for (;;) {
      try {
        return await open()
      } catch (error) {
        const isShort = codeOf(error) === "EMFILE" || codeOf(error) === "ENFILE"
        const spare = isShort ? this.held.pop() : undefined
        if (spare === undefined) throw error
        this.fileSystem.closeSync(spare)
      }
    }
  }

  /** Takes back what was given, as soon as there is something to take. */
  private refill(): void {
    while (this.held.length < this.size) {
      try {
        this.held.push(this.fileSystem.openSync(devNull, "r"))
      } catch {
        return
      }
    }
  }
}

/** The reserve of this process. */
export const processReserve = new DescriptorReserve()
