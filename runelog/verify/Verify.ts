// Reads a whole data directory and says what is wrong with it: file, offset and reason of every fault. It takes no
// lock and writes nothing, so it also works on a copy, on a read-only disk and beside a writer; beside a writer it looks
// again when what it read was changed under it.
import type { Disk } from "../disk/Disk.ts"
import { codeOf } from "../disk/DiskFault.ts"
import { makeDiskNode } from "../disk/DiskNode.ts"
import { journalDirectory, logsDirectory, quarantineDirectory } from "../Paths.ts"
import { asDiskError, DataMissing, FormatUnsupported, JournalCorrupt } from "../RunelogErrors.ts"
import { DAMAGED_SUFFIX, generationOf, type ManifestContent, readManifest } from "../recovery/Manifest.ts"
import { META_NAME, MetaFile, type MetaState } from "../recovery/MetaFile.ts"
import { isLogName } from "../segment/Segment.ts"
import { type JournalLog, verifyJournal } from "./VerifyJournal.ts"
import { verifyLog } from "./VerifyLog.ts"
import { Findings, type Inspection, type VerifyReport } from "./VerifyReport.ts"

export type {
  EventInspector,
  Findings,
  InspectedEvent,
  Inspection,
  Note,
  Problem,
  VerifyReport
} from "./VerifyReport.ts"

export interface VerifyOptions {
  readonly directory: string
  readonly disk?: Disk
  /** Looks into the events, and at what lies beside the logs; asked anew for every look at the directory. */
  readonly inspect?: () => Inspection
}

/** Beside a writer a file may change between two looks; after so many the last one counts. */
const LOOKS_MAX = 4

export const verify = async (options: VerifyOptions): Promise<VerifyReport> => {
  const disk = options.disk ?? makeDiskNode()
  const { directory } = options
  const names = [META_NAME, "journal", "runelog"]
  const found = await Promise.all(names.map((name) => disk.exists(`${directory}/${name}`)))
  if (!found.includes(true)) throw new DataMissing({ path: directory })
  let seen: string | undefined
  for (let look = 1; ; look++) {
    const findings = await lookOnce(disk, options, { isLast: look === LOOKS_MAX })
    const problems = JSON.stringify(findings?.problems)
    // A fault is what is found twice; what a writer was about to finish is gone by then.
    const isSettled = problems === "[]" || problems === seen || look === LOOKS_MAX
    if (findings !== undefined && isSettled) return findings.report(directory)
    seen = problems
  }
}

/** Nothing when a file that was listed is gone: a writer is at work. */
const lookOnce = async (
  disk: Disk,
  { directory, inspect }: VerifyOptions,
  look: { readonly isLast: boolean }
): Promise<Findings | undefined> => {
  const findings = new Findings()
  try {
    await verifyDirectory(findings, { disk, directory, inspection: inspect?.() })
    return findings
  } catch (error) {
    if (look.isLast || codeOf(error) !== "ENOENT") throw asDiskError(error, directory)
    return undefined
  }
}

type Meta = { readonly _tag: "State"; readonly state: MetaState } | { readonly _tag: "Fault"; readonly reason: string }

const readMeta = async (disk: Disk, directory: string): Promise<Meta> => {
  if (!(await disk.exists(`${directory}/${META_NAME}`))) return { _tag: "Fault", reason: "the file is missing" }
  try {
    return { _tag: "State", state: await MetaFile.read(disk, directory) }
  } catch (error) {
    if (error instanceof JournalCorrupt) return { _tag: "Fault", reason: error.reason }
    if (error instanceof FormatUnsupported) return { _tag: "Fault", reason: error.message }
    throw error
  }
}

interface Subject {
  readonly disk: Disk
  readonly directory: string
  readonly inspection: Inspection | undefined
}

const verifyDirectory = async (findings: Findings, subject: Subject): Promise<void> => {
  const { directory, disk } = subject
  const meta = await readMeta(disk, directory)
  const path = `${directory}/${META_NAME}`
  if (meta._tag === "Fault") findings.problem({ file: path, offset: 0, reason: meta.reason })
  if (await disk.exists(`${path}.tmp`)) findings.note({ file: `${path}.tmp`, text: "an unfinished file" })
  const journal = journalDirectory(directory)
  // Without meta it is not known which batches count; the logs are read all the same.
  const isReadable = meta._tag === "State" && (await disk.exists(journal))
  const logs = isReadable ? await verifyJournal(findings, disk, { directory: journal, meta: meta.state }) : new Map()
  if (!isReadable && meta._tag === "State" && !meta.state.clean) {
    findings.problem({ file: journal, offset: 0, reason: "the directory is missing" })
  }
  const isClean = meta._tag === "State" && meta.state.clean
  const manifest = await verifyManifest(findings, subject, meta)
  await verifyLogs(findings, subject, { journal: logs, manifest, isClean })
  await verifyQuarantine(findings, disk, quarantineDirectory(directory))
  await subject.inspection?.finish(findings, manifest.items)
}

const NOTHING: ManifestContent = { logs: new Map(), items: new Map() }

/** What must be there. Where it cannot be read, that is told, and nothing is missed. */
const verifyManifest = async (
  findings: Findings,
  { directory, disk }: Subject,
  meta: Meta
): Promise<ManifestContent> => {
  for (const { name } of await disk.list(directory)) {
    if (!name.endsWith(DAMAGED_SUFFIX) || generationOf(name.slice(0, -DAMAGED_SUFFIX.length)) === undefined) continue
    const reason = "the manifest was damaged and made anew: what was missing by then is not known"
    findings.problem({ file: `${directory}/${name}`, offset: 0, reason })
  }
  if (meta._tag === "Fault") return NOTHING
  const { manifest } = meta.state
  if (manifest.generation === 0) {
    findings.note({ file: directory, text: "there is no manifest yet: which logs must be there is not known" })
    return NOTHING
  }
  try {
    return await readManifest(disk, directory, manifest)
  } catch (error) {
    if (error instanceof FormatUnsupported) findings.problem({ file: error.file, offset: 0, reason: error.message })
    else if (error instanceof JournalCorrupt)
      findings.problem({ file: error.file, offset: error.offset, reason: error.reason })
    else throw error
    return NOTHING
  }
}

interface Known {
  readonly journal: ReadonlyMap<string, JournalLog>
  readonly manifest: ManifestContent
  readonly isClean: boolean
}

const verifyLogs = async (findings: Findings, subject: Subject, known: Known): Promise<void> => {
  const { disk, inspection } = subject
  const { isClean, journal, manifest } = known
  const parent = logsDirectory(subject.directory)
  const entries = (await disk.exists(parent)) ? await disk.list(parent) : []
  const names = new Set<string>()
  for (const { kind, name } of entries) {
    if (kind === "directory" && isLogName(name)) names.add(name)
    else findings.problem({ file: `${parent}/${name}`, offset: 0, reason: "not a log of the runelog" })
  }
  for (const [name, { head }] of manifest.logs) {
    if (head > 0 || names.has(name) || journal.has(name)) continue
    findings.problem({ file: `${parent}/${name}`, log: name, offset: 0, reason: "the log is missing" })
  }
  for (const name of [...journal.keys(), ...manifest.logs.keys()]) names.add(name)
  for (const name of names) {
    await verifyLog(findings, {
      disk,
      log: name,
      directory: `${parent}/${name}`,
      journal: journal.get(name),
      expected: manifest.logs.get(name),
      isClean,
      inspect: inspection?.log(name)
    })
  }
}

/** A record keeps its log read-only until somebody decides; what was cut off is there to be looked at. */
const verifyQuarantine = async (findings: Findings, disk: Disk, directory: string): Promise<void> => {
  if (!(await disk.exists(directory))) return
  for (const { name } of await disk.list(directory)) {
    const file = `${directory}/${name}`
    const log = /^(.*)\.json$/.exec(name)?.[1]
    if (log === undefined) findings.note({ file, text: "a copy of what was cut off" })
    else
      findings.problem({
        file,
        log,
        offset: 0,
        reason: "damage is on record: the log is read-only until it is repaired"
      })
  }
}
