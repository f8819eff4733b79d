// Files that lie among the system and the runtimes but are not for everybody: a key in /etc that belongs to whoever
// runs the server. The kernel would let a command read it, for the command is the same user. They are looked for at the
// start and again from time to time, without holding anybody up, and hidden like everything else that is not needed.
import type { Dirent } from "node:fs"
import { lstat, readdir } from "node:fs/promises"
import { join } from "node:path"
import { type FileFacts, factsOf } from "./Handle.ts"
import { type Mount, visibleKind } from "./Places.ts"
import { sandboxLimits } from "./SandboxLimits.ts"

export interface Reader {
  readonly uid: number
  readonly gids: ReadonlyArray<number>
}

interface Private {
  readonly at: string
  readonly mode: number
  readonly file: FileFacts
}

const everybodyReads = 0o004
const everybodyEnters = 0o005

const entriesOf = (directory: string): Promise<ReadonlyArray<Dirent>> =>
  readdir(directory, { withFileTypes: true }).catch(() => [])

/** What not everybody may read; nothing below a directory that not everybody may enter, which is hidden as a whole. */
const look = async (at: string): Promise<{ readonly found?: Private; readonly isOpen: boolean }> => {
  const facts = await lstat(at, { bigint: true }).catch(() => undefined)
  if (facts === undefined || facts.isSymbolicLink()) return { isOpen: false }
  const mode = Number(facts.mode)
  const needed = facts.isDirectory() ? everybodyEnters : everybodyReads
  if ((mode & needed) === needed) return { isOpen: facts.isDirectory() }
  return { isOpen: false, found: { at, mode, file: factsOf(facts) } }
}

const search = async (places: ReadonlyArray<string>): Promise<ReadonlyArray<Private>> => {
  const found: Array<Private> = []
  const open = [...places]
  let seen = 0
  for (
    let directory = open.pop();
    directory !== undefined && seen < sandboxLimits.searchedMax;
    directory = open.pop()
  ) {
    const paths = (await entriesOf(directory)).map(({ name }) => join(directory ?? "", name))
    seen += paths.length
    const looks = await Promise.all(paths.map(look))
    looks.forEach(({ found: one, isOpen }, index) => {
      if (one !== undefined) found.push(one)
      if (isOpen) open.push(paths[index] ?? "")
    })
  }
  return found
}

const mayRead = ({ gids, uid }: Reader, { file, mode }: Private): boolean => {
  if (file.uid === uid) return (mode & 0o500) !== 0
  return gids.includes(file.gid) && (mode & 0o050) !== 0
}

export class Privates {
  private readonly places: ReadonlyArray<string>
  private found: ReadonlyArray<Private> = []
  private lookedMs = Number.NEGATIVE_INFINITY
  private looking: Promise<void> | undefined

  constructor(places: ReadonlyArray<string>) {
    this.places = places
  }

  /** Looks once more; whoever asks meanwhile waits for the same look. */
  refresh(): Promise<void> {
    this.looking ??= this.look()
    return this.looking
  }

  private async look(): Promise<void> {
    this.found = await search(this.places)
    this.lookedMs = performance.now()
    this.looking = undefined
  }

  /** What has to be hidden from this user. */
  hiddenFrom(reader: Reader): ReadonlyArray<Mount> {
    if (performance.now() - this.lookedMs > sandboxLimits.searchAgainMs) void this.refresh()
    return this.found
      .filter((one) => mayRead(reader, one) && visibleKind(one.at) === one.file.kind)
      .slice(0, sandboxLimits.privatesMax)
      .map(({ at, file }) => ({ at, kind: file.kind === "directory" ? "empty" : "blank", file }))
  }
}
