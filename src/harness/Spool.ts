// The spool of one agent: hooks that its shim wrote to disk, in the order of their names. A file is removed when what it says is
// durable, so a server that dies in between hears it again; sessions know doubles by their ids.

import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, watch } from "node:fs"
import { join } from "node:path"
import { every } from "../contract/Timers.ts"
import { harnessLimits } from "./HarnessLimits.ts"

export interface SpooledHook {
  readonly name: string
  /** The body, or nothing where it could not be read as JSON: the hook itself still says something. */
  readonly body: unknown
  readonly isBroken: boolean
  readonly file: string
}

const fileName = /^\d{1,24}-\d{1,10}-([A-Za-z]{1,40})\.json$/

const parsed = (text: string): Pick<SpooledHook, "body" | "isBroken"> => {
  try {
    return { body: JSON.parse(text), isBroken: false }
  } catch {
    return { body: undefined, isBroken: true }
  }
}

/** By time, then by process: names of other lengths sort wrong as text. */
const inOrder = (left: string, right: string): number =>
  left.length === right.length ? (left < right ? -1 : 1) : parseInt(left, 10) - parseInt(right, 10)

export class Spool {
  private readonly directory: string

  constructor(directory: string) {
    this.directory = directory
    mkdirSync(directory, { recursive: true, mode: 0o700 })
  }

  /** What waits, oldest first, up to the limit of one pass. */
  waiting(): ReadonlyArray<SpooledHook> {
    const files = readdirSync(this.directory).filter((name) => !name.startsWith(".") && name.endsWith(".json"))
    return files
      .sort(inOrder)
      .slice(0, harnessLimits.spoolFilesMax)
      .flatMap((file) => {
        const name = fileName.exec(file)?.[1]
        if (name === undefined) {
          this.setAside(file)
          return []
        }
        return [{ name, file, ...parsed(readFileSync(join(this.directory, file), "utf8")) }]
      })
  }

  done({ file }: SpooledHook): void {
    rmSync(join(this.directory, file), { force: true })
  }

  private setAside(file: string): void {
    renameSync(join(this.directory, file), join(this.directory, `.${file}`))
  }

  /** Calls whenever something may have come; returns how to stop. */
  watch(changed: () => void): () => void {
    const watcher = watch(this.directory, () => changed())
    watcher.on("error", () => watcher.close())
    const cancel = every(harnessLimits.spoolCheckMs, changed)
    return () => {
      watcher.close()
      cancel()
    }
  }
}
