// Which hooks a conversation has: those of the data directory, and those of its workspace where somebody answers for
// them. A file of a workspace is code of whoever wrote the workspace: it is used only if the conversation may do
// everything anyway and is held while it does, or if a person has trusted exactly this content. Files are read again when they change.
import { createHash } from "node:crypto"
import { join } from "node:path"
import { errorTable } from "../machine/ErrorTable.ts"
import { limits } from "../machine/MachineLimits.ts"
import type { ConversationState } from "../machine/State.ts"
import type { PayloadOf } from "../rune/Kinds.ts"
import { type HookOrigin, type HookScene, type HookSet, noHookSet, type ParsedHooks } from "./Definition.ts"
import { hookLimits } from "./HookLimits.ts"
import { parseHooks } from "./Parse.ts"

/** A file as it is now; the stamp changes when the file does. */
export interface FileVersion {
  readonly stamp: string
  /** Throws when it cannot be read. */
  readonly text: () => string
}

export interface HookFilesOptions {
  readonly dataDirectory: string
  /** The file, unless there is none. */
  readonly open: (path: string) => FileVersion | undefined
  /** Whether a person has trusted a file of this content (SHA-256 in hexadecimal). */
  readonly isTrusted: (sha256: string) => boolean
  /** The operating system holds what hooks run; where it does not, no mode of a conversation answers for a file. */
  readonly isContained: boolean
}

interface HookFile {
  readonly path: string
  readonly sha256: string
  readonly parsed: ParsedHooks
}

interface Remembered {
  readonly stamp: string
  readonly file: HookFile
}

export interface HookPlaces {
  readonly hooks: ReadonlyArray<string>
  readonly settings: ReadonlyArray<string>
}

/** Where the hooks of a workspace are looked for. */
export const workspacePlaces = (workspace: string): HookPlaces => ({
  hooks: [join(workspace, ".echs", "hooks.json"), join(workspace, "hooks.json")],
  settings: [join(workspace, ".claude", "settings.json"), join(workspace, ".claude", "settings.local.json")]
})

export const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex")

const isEmpty = ({ batch, events }: HookSet): boolean => batch.length === 0 && events.length === 0

type Complaint = PayloadOf<"system.error">

const complaint = (code: "hook_config_invalid" | "hook_config_untrusted", message: string): Complaint => ({
  code,
  message: message.slice(0, limits.noticeCharsMax).toWellFormed(),
  retryable: false,
  source: errorTable.hook_config_invalid.source
})

const joined = (sets: ReadonlyArray<HookSet>): HookSet =>
  sets.length === 0
    ? noHookSet
    : { batch: sets.flatMap(({ batch }) => batch), events: sets.flatMap(({ events }) => events) }

export class HookFiles {
  private readonly options: HookFilesOptions
  private readonly remembered = new Map<string, Remembered>()

  constructor(options: HookFilesOptions) {
    this.options = options
  }

  /** The hooks of a conversation, in the order in which they run. */
  hooksOf(state: HookScene): HookSet {
    return joined(this.usable(state).flatMap(({ parsed }) => (parsed._tag === "Hooks" ? [parsed.set] : [])))
  }

  /** What a person has to know about the files, unless the conversation has been told already. */
  complaints(state: ConversationState): ReadonlyArray<Complaint> {
    const usable = this.usable(state)
    // The state remembers an error by its code and its message, cut to a limit.
    const isTold = ({ code, message }: Complaint): boolean =>
      state.notices.some((notice) => notice.message === `${code}: ${message}`.slice(0, limits.noticeCharsMax))
    const invalid = usable.flatMap(({ parsed, path }) =>
      parsed._tag === "Invalid"
        ? [complaint("hook_config_invalid", `${path}: ${parsed.reason}; its hooks are off`)]
        : []
    )
    const untrusted = this.ofWorkspace(state)
      .filter((file) => !usable.includes(file) && file.parsed._tag === "Hooks" && !isEmpty(file.parsed.set))
      .map(({ path, sha256 }) => complaint("hook_config_untrusted", untrustedMessage(path, sha256)))
    return [...invalid, ...untrusted].filter((one) => !isTold(one))
  }

  private usable(state: HookScene): ReadonlyArray<HookFile> {
    const own = this.file(join(this.options.dataDirectory, "hooks.json"), { origin: "data", isSettings: false })
    const isGranted = this.options.isContained && state.session.config.policy?.mode === "full_access"
    const granted = this.ofWorkspace(state).filter(({ sha256 }) => isGranted || this.options.isTrusted(sha256))
    return own === undefined ? granted : [own, ...granted]
  }

  private ofWorkspace(state: HookScene): ReadonlyArray<HookFile> {
    const { workspace } = state.session.config
    if (workspace === undefined) return []
    const { hooks, settings } = workspacePlaces(workspace)
    const origin = "workspace" as const
    const first = hooks.map((path) => this.file(path, { origin, isSettings: false })).find((file) => file !== undefined)
    return [first, ...settings.map((path) => this.file(path, { origin, isSettings: true }))].flatMap(
      (file) => file ?? []
    )
  }

  private file(
    path: string,
    kind: { readonly origin: HookOrigin; readonly isSettings: boolean }
  ): HookFile | undefined {
    const version = this.options.open(path)
    if (version === undefined) {
      this.remembered.delete(path)
      return undefined
    }
    const known = this.remembered.get(path)
    if (known?.stamp === version.stamp) return known.file
    const file = readFile(path, version, kind)
    this.remembered.delete(path)
    this.remembered.set(path, { stamp: version.stamp, file })
    const [oldest] = this.remembered.keys()
    if (this.remembered.size > hookLimits.filesRemembered && oldest !== undefined) this.remembered.delete(oldest)
    return file
  }
}

const untrustedMessage = (path: string, sha256: string): string =>
  `${path} has hooks and nobody has trusted them, so they do not run; \`echs hooks trust\` does (${sha256.slice(0, 12)})`

const readFile = (
  path: string,
  version: FileVersion,
  kind: { readonly origin: HookOrigin; readonly isSettings: boolean }
): HookFile => {
  try {
    const text = version.text()
    const isTooLong = text.length > hookLimits.fileBytesMax
    const parsed: ParsedHooks = isTooLong
      ? { _tag: "Invalid", reason: `it is longer than ${hookLimits.fileBytesMax} bytes` }
      : parseHooks({ text, ...kind })
    return { path, sha256: hashOf(text), parsed }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return { path, sha256: "", parsed: { _tag: "Invalid", reason } }
  }
}
