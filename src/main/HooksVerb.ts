// `echs hooks`: lists the hook files of a directory, whether they are valid and whether they are trusted; `trust` records
// that exactly this content may run.
import { join, resolve } from "node:path"
import { showRows } from "../cli/Pages.ts"
import { exitCode, type Terminal, type Verb } from "../cli/Verb.ts"
import { makeVerb, UsageError } from "../cli/VerbSpec.ts"
import { distrustFile, openFile, readTrusted, trustContent } from "../config/HookFiles.ts"
import type { HookOrigin } from "../hook/Definition.ts"
import { hashOf, workspacePlaces } from "../hook/HookFiles.ts"
import { parseHooks } from "../hook/Parse.ts"
import { visible } from "../present/VisibleText.ts"

export interface HooksVerbParts {
  readonly dataDirectory: (flag: string | undefined) => string
  readonly workingDirectory: () => string
  readonly nowMs: () => number
}

interface FoundFile {
  readonly path: string
  readonly sha256: string
  readonly used: "always" | "trusted" | "not trusted"
  readonly hooks: ReadonlyArray<string>
  readonly invalid?: string
}

const lookAt = (
  path: string,
  kind: { readonly origin: HookOrigin; readonly isSettings: boolean },
  trusted: ReadonlySet<string>
): ReadonlyArray<FoundFile> => {
  const text = openFile(path)?.text()
  if (text === undefined) return []
  const sha256 = hashOf(text)
  const used = kind.origin === "data" ? "always" : trusted.has(sha256) ? "trusted" : "not trusted"
  const parsed = parseHooks({ text, ...kind })
  if (parsed._tag === "Invalid") return [{ path, sha256, used, hooks: [], invalid: parsed.reason }]
  const { batch, events } = parsed.set
  const hooks = [
    ...batch.map(({ argv, name }) => `${name}: ${argv.join(" ")}`),
    ...events.map(({ command, name }) => `${name}: ${command}`)
  ]
  return hooks.length === 0 && kind.isSettings ? [] : [{ path, sha256, used, hooks }]
}

const findFiles = (data: string, workspace: string): ReadonlyArray<FoundFile> => {
  const trusted = new Set(readTrusted(data).map(({ sha256 }) => sha256))
  const { hooks, settings } = workspacePlaces(workspace)
  const own = { origin: "data", isSettings: false } as const
  const inWorkspace = (isSettings: boolean) => ({ origin: "workspace" as const, isSettings })
  // Of the two places for a list of hooks, the first that exists is used.
  const list = hooks.map((path) => lookAt(path, inWorkspace(false), trusted)).find((found) => found.length > 0) ?? []
  return [
    ...lookAt(join(data, "hooks.json"), own, trusted),
    ...list,
    ...settings.flatMap((path) => lookAt(path, inWorkspace(true), trusted))
  ]
}

const words = (files: ReadonlyArray<FoundFile>): string =>
  files.length === 0
    ? "no hooks found\n"
    : files
        .map(({ hooks, invalid, path, used }) => {
          const head = `${visible(path)}  (${used === "always" ? "used" : used})\n`
          return invalid === undefined
            ? `${head}${hooks.map((hook) => `  ${visible(hook)}\n`).join("")}`
            : `${head}  invalid: ${visible(invalid)}\n`
        })
        .join("")

/** Shows exactly what would be trusted and asks for confirmation, where a person can answer. */
const isConfirmed = async (shown: string, terminal: Terminal): Promise<boolean> => {
  if (!terminal.isAnswered) return true
  const signal = terminal.interruption()
  if ((await showRows(shown.trimEnd().split("\n"), terminal, signal)) === "stopped") return false
  const answer = await terminal.ask("  trust exactly this? [y]es, [n]o ", signal)
  return /^y(es)?$/i.test(answer?.trim() ?? "")
}

const isTheirs = ({ used }: FoundFile): boolean => used !== "always"

export const make = (parts: HooksVerbParts): Verb =>
  makeVerb({
    name: "hooks",
    takes: "[show | trust | distrust] [DIRECTORY]",
    positionals: { min: 0, max: 2 },
    options: {
      data: {
        type: "string",
        value: "DIR",
        help: "data directory (default: ECHS_DATA, then the user's state directory)"
      }
    },
    example: "echs hooks trust .",
    notes: [
      "Hooks in the data directory always run. Hooks in a workspace come from whoever wrote it: they run only in",
      "conversations with full access, or after exactly this content was trusted here."
    ],
    run: async ({ answer, positionals: [action = "show", directory = "."], terminal, values }) => {
      const data = parts.dataDirectory(values.data)
      const workspace = resolve(parts.workingDirectory(), directory)
      const files = findFiles(data, workspace)
      if (action === "show") {
        answer({ files }, () => words(files))
        return files.some(({ invalid }) => invalid !== undefined) ? exitCode.failed : exitCode.done
      }
      if (action !== "trust" && action !== "distrust")
        throw new UsageError(`unknown action "${action}"; use show, trust or distrust`)
      const theirs = files.filter(isTheirs)
      if (theirs.length === 0) {
        terminal.complain(`echs hooks: no hooks in ${workspace}\n`)
        return exitCode.notFound
      }
      if (action === "trust" && values.json !== true && !(await isConfirmed(words(theirs), terminal))) {
        terminal.complain("nothing was trusted\n")
        return exitCode.interrupted
      }
      for (const { path, sha256 } of theirs) {
        if (action === "trust") trustContent(data, { path, sha256 }, parts.nowMs())
        else distrustFile(data, path)
      }
      const now = findFiles(data, workspace).filter(isTheirs)
      answer({ files: now }, () => words(now))
      return exitCode.done
    }
  })
