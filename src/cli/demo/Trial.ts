// One round of the demo: start a writer, kill it in the middle of its work, open what it left behind and compare every
// entry with what the writer had said was durable.
import { type ChildProcess, spawn } from "node:child_process"
import type { Readable } from "node:stream"
import { demoEntry, demoLogs, type OpenDemoLog, parseReceipt } from "./DemoLog.ts"

export interface TrialOptions {
  readonly directory: string
  readonly openLog: OpenDemoLog
  /** Program and arguments that start a writer; the directory is added. */
  readonly writer: ReadonlyArray<string>
  /** The writer is killed when it has said of this many entries that they are durable. */
  readonly killAfter: number
  readonly signal: AbortSignal
}

export interface TrialReport {
  /** Entries the writer had called durable when it died, in all rounds so far. */
  readonly acknowledged: number
  readonly found: number
  readonly missing: number
  readonly altered: number
  readonly reopenMs: number
}

/** Log → event id up to which the writer said it is durable. */
type Receipts = ReadonlyMap<string, number>

export class WriterFailed extends Error {
  override readonly name = "WriterFailed"
}

export const runTrial = async (
  options: TrialOptions,
  before: Receipts
): Promise<{ report: TrialReport; receipts: Receipts }> => {
  const receipts = await killWriter(options, before)
  const openedAt = performance.now()
  const log = await options.openLog(options.directory)
  const reopenMs = performance.now() - openedAt
  try {
    const totals = { acknowledged: 0, found: 0, missing: 0, altered: 0 }
    for (const name of demoLogs) {
      const acknowledged = receipts.get(name) ?? 0
      const { found, altered } = await compare(name, log.read(name))
      totals.acknowledged += acknowledged
      totals.found += found
      totals.missing += Math.max(0, acknowledged - found)
      totals.altered += altered
    }
    return { report: { ...totals, reopenMs }, receipts }
  } finally {
    await log.close()
  }
}

const compare = async (name: string, entries: AsyncIterable<Uint8Array>) => {
  let found = 0
  let altered = 0
  for await (const entry of entries) {
    found += 1
    if (Buffer.compare(entry, demoEntry(name, found)) !== 0) altered += 1
  }
  return { found, altered }
}

const killWriter = async (options: TrialOptions, before: Receipts): Promise<Receipts> => {
  const [program = "", ...args] = options.writer
  const child = spawn(program, [...args, options.directory], {
    stdio: ["ignore", "pipe", "pipe"],
    signal: options.signal,
    killSignal: "SIGKILL"
  })
  const ended = endOf(child)
  const receipts = new Map(before)
  let acknowledged = 0
  try {
    // What the writer said before it died is still in the pipe after its death; all of it counts.
    for await (const line of wholeLines(child.stdout)) {
      const receipt = parseReceipt(line)
      if (receipt === undefined) throw new WriterFailed(`the writer said "${line}"`)
      acknowledged += receipt.eventId - (receipts.get(receipt.log) ?? 0)
      receipts.set(receipt.log, receipt.eventId)
      if (acknowledged >= options.killAfter) child.kill("SIGKILL")
    }
  } finally {
    child.kill("SIGKILL")
  }
  const end = await ended
  if (end.signal !== "SIGKILL") throw new WriterFailed(`the writer ended by itself, code ${end.code}: ${end.complaint}`)
  options.signal.throwIfAborted()
  return receipts
}

/** Lines that were ended; a last one that the kill cut short was not said. */
const wholeLines = async function* (input: Readable): AsyncGenerator<string> {
  let rest = ""
  for await (const text of input.setEncoding("utf8")) {
    const lines = `${rest}${text}`.split("\n")
    rest = lines.pop() ?? ""
    yield* lines
  }
}

const endOf = (child: ChildProcess): Promise<{ code: number | null; signal: string | null; complaint: string }> =>
  new Promise((resolve, reject) => {
    let complaint = ""
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      complaint = (complaint + text).slice(-2_000)
    })
    child.once("error", (error) => (error.name === "AbortError" ? undefined : reject(error)))
    child.once("close", (code, signal) => resolve({ code, signal, complaint: complaint.trim() }))
  })
