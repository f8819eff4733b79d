// The rules of a server: `policy.json` in its data directory, written by people, with what people allowed for good
// added below. A change of the file is noticed; a file that cannot be read allows nothing, and is never written over.
import { createHash } from "node:crypto"
import { readFileSync, statSync } from "node:fs"
import { mkdir, open, rename, rm } from "node:fs/promises"
import { dirname } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ServerLog } from "../contract/ServerLog.ts"
import type { WireCode } from "../contract/WireFailure.ts"
import { canonicalJson } from "../machine/Canonical.ts"
import { policyLimits } from "./PolicyLimits.ts"
import type { PolicyMode } from "./PolicyPort.ts"
import { readRule, ruleIssues } from "./Rule.ts"

export interface PolicyDocument {
  /** Used by `echs policy test`, where a conversation has no mode of its own. */
  readonly mode?: PolicyMode
  readonly rules: ReadonlyArray<unknown>
  /** Allowed for good by people, in the order in which they did. */
  readonly learnt: ReadonlyArray<unknown>
}

/** What is wrong with a policy file, in one sentence. */
export class PolicyUnreadable extends Error {
  override readonly name = "PolicyUnreadable"
  readonly _tag = "PolicyUnreadable"
  readonly wireCode = "bad_request" as const satisfies WireCode
}

const modes: ReadonlySet<unknown> = new Set(["read_only", "auto", "full_access", undefined])
const fields: ReadonlySet<string> = new Set(["mode", "rules", "learnt"])

const listOf = (value: unknown, name: string): ReadonlyArray<unknown> => {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw new PolicyUnreadable(`${name} is no list`)
  const [issue] = ruleIssues(value)
  if (issue !== undefined) throw new PolicyUnreadable(`${name}: rule ${issue.index + 1}: ${issue.message}`)
  return value
}

/** Reads the text of a policy file; throws PolicyUnreadable. */
export const readPolicyFile = (text: string): PolicyDocument => {
  if (Buffer.byteLength(text) > policyLimits.fileBytesMax) throw new PolicyUnreadable("it is too large")
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new PolicyUnreadable(`it is no JSON: ${(error as Error).message}`)
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new PolicyUnreadable("it is no object")
  const unknown = Object.keys(value).find((name) => !fields.has(name))
  if (unknown !== undefined) throw new PolicyUnreadable(`there is no field "${unknown}", only mode, rules and learnt`)
  const { learnt, mode, rules } = value as Readonly<Record<string, unknown>>
  if (!modes.has(mode)) throw new PolicyUnreadable("mode is one of read_only, auto, full_access")
  return {
    ...(mode === undefined ? {} : { mode: mode as PolicyMode }),
    rules: listOf(rules, "rules"),
    learnt: listOf(learnt, "learnt")
  }
}

/** The policy file changed since it was read; nothing was written. */
export class PolicyChanged extends Error {
  override readonly name = "PolicyChanged"
  readonly _tag = "PolicyChanged"
  readonly wireCode = "invalid_state" as const satisfies WireCode
}

/** The file as it is now. The revision tells one content from another. */
export interface PolicySnapshot {
  readonly revision: string
  readonly document: PolicyDocument
  /** What is wrong with the file; the document is empty then. */
  readonly issue?: string
}

/** The rules of a server. People write them; what they allow for good is added. */
export interface PolicyFile {
  readonly rules: ReadonlyArray<unknown>
  readonly read: () => PolicySnapshot
  /** Replaces the file if it is still the one that was read; rejects with PolicyChanged or PolicyUnreadable. */
  readonly replace: (document: unknown, revision: string) => Promise<PolicySnapshot>
  /** Writes down what a person allowed for good; resolves when it is on disk, rejects with PolicyUnreadable. */
  readonly learn: (rule: unknown) => Promise<void>
}

/** File systems stamp changes with a coarse clock: a file this young may change again without looking different. */
const settledAfterMs = 2_000

type Loaded =
  | { readonly _tag: "Read"; readonly file: PolicyDocument; readonly all: ReadonlyArray<unknown> }
  | { readonly _tag: "Unreadable"; readonly reason: string; readonly all: ReadonlyArray<unknown> }

/** What a file looks like from outside; one that looks different has changed. */
export interface FileStamp {
  readonly text: string
  readonly changedMs: number
}

const noFile: PolicyDocument = { rules: [], learnt: [] }

export interface PolicyFileOptions {
  readonly path: string
  readonly nowMs: () => number
  /** What the machine says of a file, unless told. */
  readonly stampOf?: (path: string) => FileStamp
  /** Told once for every state of the file that cannot be read. */
  readonly onUnreadable?: (reason: string) => void
}

class FileBook implements PolicyFile {
  private readonly options: PolicyFileOptions
  private loaded: Loaded = { _tag: "Read", file: noFile, all: [] }
  private stamp = ""
  private isSettled = false
  private writing: Promise<void> = Promise.resolve()

  constructor(options: PolicyFileOptions) {
    this.options = options
  }

  /** The file is looked at each time: a rule holds for the next call, not for one some time later. */
  get rules(): ReadonlyArray<unknown> {
    const { changedMs, text: stamp } = (this.options.stampOf ?? stampOf)(this.options.path)
    if (stamp === this.stamp && this.isSettled) return this.loaded.all
    this.stamp = stamp
    this.isSettled = this.options.nowMs() - changedMs > settledAfterMs
    const before = this.loaded
    this.loaded = this.load()
    if (this.loaded._tag === "Unreadable" && this.loaded.reason !== reasonOf(before))
      this.options.onUnreadable?.(this.loaded.reason)
    return this.loaded.all
  }

  read(): PolicySnapshot {
    const { loaded: now, text } = this.look()
    const revision = createHash("sha256").update(text).digest("hex")
    return now._tag === "Read" ? { revision, document: now.file } : { revision, document: noFile, issue: now.reason }
  }

  /** Writes take turns: what is learnt meanwhile is a change. */
  replace(document: unknown, revision: string): Promise<PolicySnapshot> {
    const written = this.writing.then(async () => {
      const text = `${JSON.stringify(document, null, 2)}\n`
      readPolicyFile(text)
      const now = this.read()
      if (now.issue !== undefined) throw new PolicyUnreadable(`policy.json is repaired by hand: ${now.issue}`)
      if (now.revision !== revision) throw new PolicyChanged("the policy changed since it was read")
      await replaceFile(this.options.path, text)
      return this.read()
    })
    this.writing = written.then(
      () => undefined,
      () => undefined
    )
    return written
  }

  private load(): Loaded {
    return this.look().loaded
  }

  /** The file as text and as rules, from one reading. */
  private look(): { readonly text: string; readonly loaded: Loaded } {
    let text = ""
    try {
      text = readFileSync(this.options.path, "utf8")
      const file = readPolicyFile(text)
      return { text, loaded: { _tag: "Read", file, all: [...file.rules, ...file.learnt] } }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT")
        return { text, loaded: { _tag: "Read", file: noFile, all: [] } }
      const reason = (error as Error).message
      // In place of the rules that nobody knows: one that is none, about which everything is asked.
      return { text, loaded: { _tag: "Unreadable", reason, all: [`the policy file cannot be read: ${reason}`] } }
    }
  }

  learn(rule: unknown): Promise<void> {
    const written = this.writing.then(() => this.add(rule))
    this.writing = written.catch(() => undefined)
    return written
  }

  private async add(rule: unknown): Promise<void> {
    const read = readRule(rule)
    if (typeof read === "string") throw new PolicyUnreadable(read)
    if (read.decision !== "allow" || read.uncontained === true)
      throw new PolicyUnreadable("nothing of the kind is learnt")
    const now = this.load()
    if (now._tag === "Unreadable") throw new PolicyUnreadable(now.reason)
    const { learnt, ...rest } = now.file
    const meaning = meaningOf(rule)
    if (learnt.some((one) => meaningOf(one) === meaning)) return
    const kept = [...learnt, rule].slice(-policyLimits.learntMax)
    await replaceFile(this.options.path, `${JSON.stringify({ ...rest, learnt: kept }, null, 2)}\n`)
  }
}

/** A rule without why it is there: two that allow the same are the same. */
const meaningOf = (rule: unknown): string => {
  const { reason: _, ...meaning } = rule as Readonly<Record<string, unknown>>
  return canonicalJson(meaning)
}

const reasonOf = (loaded: Loaded): string | undefined => (loaded._tag === "Unreadable" ? loaded.reason : undefined)

/** The time of change, which unlike that of modification nobody can set. */
const stampOf = (path: string): FileStamp => {
  try {
    const { ctimeMs, ctimeNs, ino, size } = statSync(path, { bigint: true })
    return { text: `${ino} ${ctimeNs} ${size}`, changedMs: Number(ctimeMs) }
  } catch (error) {
    return { text: `none ${(error as NodeJS.ErrnoException).code}`, changedMs: Number.NEGATIVE_INFINITY }
  }
}

/** All of the new text, or all of the old one, also after a crash. */
const replaceFile = async (path: string, text: string): Promise<void> => {
  const fresh = `${path}.${process.pid}.new`
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  try {
    const file = await open(fresh, "w", 0o600)
    try {
      await file.writeFile(text)
      await file.datasync()
    } finally {
      await file.close()
    }
    await rename(fresh, path)
    const directory = await open(dirname(path), "r")
    await directory.sync().finally(() => directory.close())
  } catch (error) {
    await rm(fresh, { force: true })
    throw error
  }
}

export const openPolicyFile = (options: PolicyFileOptions): PolicyFile => new FileBook(options)

/** The rules that hold for every conversation of a server. */
export class ServerRules extends Context.Service<
  ServerRules,
  {
    /** As they are now: the file may change while the server runs. */
    readonly current: () => ReadonlyArray<unknown>
    /** Writes down for the whole server what a person allowed for good. */
    readonly learn?: PolicyFile["learn"]
    /** The file behind them, to be shown and edited. */
    readonly file?: Pick<PolicyFile, "read" | "replace">
  }
>()("echs/ServerRules") {
  /** A server without rules of its own, which writes none down. */
  static readonly none: Layer.Layer<ServerRules> = Layer.succeed(ServerRules, { current: () => [] })

  static readonly layer = (path: string): Layer.Layer<ServerRules, never, ServerLog> =>
    Layer.effect(
      ServerRules,
      Effect.map(ServerLog, (log) => {
        const file = openPolicyFile({
          path,
          nowMs: () => Date.now(),
          onUnreadable: (reason) =>
            log.write("error", "policy.json cannot be read: everything is asked about", { cause: reason })
        })
        return { current: () => file.rules, learn: (rule) => file.learn(rule), file }
      })
    )
}
