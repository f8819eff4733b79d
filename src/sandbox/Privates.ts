// Files that lie among the system and the runtimes but are not for everybody: a key in /etc that belongs to whoever
// runs the server. The kernel would let a command read it, for the command is the same user. They are looked for at the
// start and again from time to time, without holding anybody up, and hidden like everything else that is not needed.

import type { Dirent } from "node:fs"
import { lstat, readdir } from "node:fs/promises"
import { dirname, join } from "node:path"
import { elementAt } from "../rune/Elements.ts"
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

interface Look {
  readonly seen?: Private
  readonly found?: Private
  readonly isOpen: boolean
}

/** What not everybody may read; nothing below a directory that not everybody may enter, which is hidden as a whole. */
const look = async (at: string): Promise<Look> => {
  const facts = await lstat(at, { bigint: true }).catch(() => undefined)
  if (facts === undefined || facts.isSymbolicLink()) return { isOpen: false }
  const mode = Number(facts.mode)
  const needed = facts.isDirectory() ? everybodyEnters : everybodyReads
  const seen = { at, mode, file: factsOf(facts) }
  if ((mode & needed) === needed) return { isOpen: facts.isDirectory(), seen }
  return { isOpen: false, found: seen }
}

interface Found {
  readonly privates: ReadonlyArray<Private>
  /** Directories beyond the limit of what is looked at: whatever is in them is not shown to anybody. */
  readonly unsearched: ReadonlyArray<Private>
  /** Every directory on the way. */
  readonly directories: ReadonlyMap<string, Private>
}

/** Level by level, so that what is left out for the limit lies deep. */
const search = async (places: ReadonlyArray<string>, searchedMax: number): Promise<Found> => {
  const privates: Array<Private> = []
  const directories = new Map<string, Private>()
  const open: Array<Private> = []
  const enter = ({ found, isOpen, seen: one }: Look): void => {
    if (found !== undefined) privates.push(found)
    if (!isOpen || one === undefined) return
    directories.set(one.at, one)
    open.push(one)
  }
  for (const one of await Promise.all(places.map(look))) enter(one)
  let at = 0
  for (let seen = 0; at < open.length && seen < searchedMax; at++) {
    const directory = elementAt(open, at).at
    const paths = (await entriesOf(directory)).map(({ name }) => join(directory, name))
    seen += paths.length
    for (const one of await Promise.all(paths.map(look))) enter(one)
  }
  return { privates, directories, unsearched: open.slice(at) }
}

const depthOf = ({ at }: Private): number => at.split("/").length

/** Nothing twice, and nothing that lies below something that is hidden itself. */
const topmost = (list: ReadonlyArray<Private>): ReadonlyArray<Private> => {
  const byPath = new Map(list.map((one) => [one.at, one]))
  const isBelow = (path: string): boolean => {
    for (let above = dirname(path); above !== dirname(above); above = dirname(above)) if (byPath.has(above)) return true
    return false
  }
  return [...byPath.values()].filter(({ at }) => !isBelow(at))
}

/** More than can be hidden one by one are hidden with the directories around them, the deepest first: never fewer. */
const bounded = (list: ReadonlyArray<Private>, { directories }: Found, max: number): ReadonlyArray<Private> => {
  let hidden = topmost(list)
  while (hidden.length > max) {
    const deepest = Math.max(...hidden.map(depthOf))
    const widened = topmost(
      hidden.map((one) => (depthOf(one) === deepest ? (directories.get(dirname(one.at)) ?? one) : one))
    )
    if (widened.length === hidden.length && widened.every((one) => hidden.includes(one))) return hidden
    hidden = widened
  }
  return hidden
}

const mayRead = ({ gids, uid }: Reader, { file, mode }: Private): boolean => {
  if (file.uid === uid) return (mode & 0o500) !== 0
  return gids.includes(file.gid) && (mode & 0o050) !== 0
}

type Limits = { readonly [K in "searchedMax" | "privatesMax"]: number }

export class Privates {
  private readonly places: ReadonlyArray<string>
  private readonly limits: Limits
  private found: Found = { privates: [], unsearched: [], directories: new Map() }
  private lookedMs = Number.NEGATIVE_INFINITY
  private againMs: number = sandboxLimits.searchAgainMs
  private looking: Promise<void> | undefined

  constructor(places: ReadonlyArray<string>, limits: Limits = sandboxLimits) {
    this.places = places
    this.limits = limits
  }

  /** Looks once more; whoever asks meanwhile waits for the same look. */
  refresh(): Promise<void> {
    this.looking ??= this.look()
    return this.looking
  }

  private async look(): Promise<void> {
    const startedMs = performance.now()
    this.found = await search(this.places, this.limits.searchedMax)
    this.lookedMs = performance.now()
    this.againMs = Math.max(sandboxLimits.searchAgainMs, (this.lookedMs - startedMs) * sandboxLimits.searchRest)
    this.looking = undefined
  }

  /** What has to be hidden from this user. */
  hiddenFrom(reader: Reader): ReadonlyArray<Mount> {
    if (performance.now() - this.lookedMs > this.againMs) void this.refresh()
    const { privates, unsearched } = this.found
    const isThere = (one: Private): boolean => visibleKind(one.at) === one.file.kind
    const hidden = [...privates.filter((one) => mayRead(reader, one)), ...unsearched].filter(isThere)
    return bounded(hidden, this.found, this.limits.privatesMax).map(({ at, file }) => ({
      at,
      kind: file.kind === "directory" ? "empty" : "blank",
      file
    }))
  }
}
