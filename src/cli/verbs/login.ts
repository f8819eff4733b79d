// `echs login`: stores the key of a model provider, for its owner alone, and never shows it. Needs no server; a running one
// uses the key from the next request on.
import { KeyDecoder } from "../chat/Keys.ts"
import { reportingSettings, type SettingsFailure } from "../shared/Settings.ts"
import { type ExitCode, exitCode, type Terminal, type Verb } from "../Verb.ts"
import { dataOption, makeVerb, UsageError } from "../VerbSpec.ts"

export interface LoginParts extends SettingsFailure {
  readonly credentials: (data: string | undefined) => Promise<{
    readonly path: string
    /** Variables that have a key, and where it comes from. */
    readonly items: ReadonlyArray<{ readonly variable: string; readonly source: "environment" | "credentials.json" }>
  }>
  readonly storeCredential: (data: string | undefined, variable: string, key: string) => Promise<void>
  readonly removeCredential: (data: string | undefined, variable: string) => Promise<boolean>
}

const providers: Readonly<Record<string, { readonly variable: string; readonly page: string }>> = {
  anthropic: { variable: "ANTHROPIC_API_KEY", page: "https://platform.claude.com/settings/keys" },
  openai: { variable: "OPENAI_API_KEY", page: "https://platform.openai.com/api-keys" }
}

const variableOf = (name: string): string => {
  const known = providers[name.toLowerCase()]?.variable
  if (known !== undefined) return known
  if (/^[A-Z][A-Z0-9_]{1,63}$/.test(name)) return name
  throw new UsageError(
    `unknown provider "${name}"; use anthropic, openai, or the key variable of a provider in your settings`
  )
}

const keyCharsMax = 4_096

/** A line that is typed or pasted and not shown; undefined when the person gave up. */
const askHidden = (question: string, terminal: Terminal): Promise<string | undefined> => {
  const keyboard = terminal.keyboard()
  if (keyboard === undefined) return terminal.ask("", new AbortController().signal)
  terminal.write(question)
  const decoder = new KeyDecoder()
  let typed = ""
  return new Promise((resolve) => {
    const end = (result: string | undefined): void => {
      keyboard.release()
      terminal.write("\r\n")
      resolve(result)
    }
    keyboard.onInput((text) => {
      for (const key of decoder.feed(text)) {
        if (key.type !== "key") typed += key.text
        else if (key.name === "enter") return end(typed)
        else if (key.name === "backspace") typed = typed.slice(0, -1)
        else if (key.ctrl && (key.name === "c" || key.name === "d")) return end(undefined)
      }
    })
  })
}

const store = async (
  parts: LoginParts,
  to: { readonly data: string | undefined; readonly name: string; readonly terminal: Terminal }
): Promise<string | undefined> => {
  const { data, name, terminal } = to
  const variable = variableOf(name)
  const page = providers[name.toLowerCase()]?.page
  if (page !== undefined && terminal.isAnswered) terminal.write(`get a key at ${page}\n`)
  const key = (await askHidden(`${variable} (not shown): `, terminal))?.trim()
  if (key === undefined || key === "") return undefined
  if (key.length > keyCharsMax || /[^\x21-\x7e]/.test(key))
    throw new UsageError(`a key is one word of at most ${keyCharsMax} visible ASCII characters`)
  await parts.storeCredential(data, variable, key)
  return variable
}

export const make = (parts: LoginParts): Verb =>
  makeVerb({
    name: "login",
    takes: "[PROVIDER]",
    positionals: { min: 0, max: 1 },
    options: { data: dataOption, remove: { type: "boolean", help: "delete the stored key of PROVIDER" } },
    example: "echs login anthropic",
    notes: [
      "PROVIDER is anthropic, openai, or the key variable of a provider in your settings. Without it, lists which keys are set.",
      "The key is typed or pasted without being shown, or read as one line from a pipe. A variable in the environment takes precedence."
    ],
    run: async ({ answer, positionals: [name], terminal, values }) =>
      reportingSettings(parts, { verb: "login", terminal }, async (): Promise<ExitCode> => {
        if (name === undefined) {
          const found = await parts.credentials(values.data)
          const rows = found.items.map(({ source, variable }) => `${variable}  ${terminal.paint("quiet", source)}\n`)
          answer(found, () => (rows.length === 0 ? "no key is set. Store one: echs login anthropic\n" : rows.join("")))
          return exitCode.done
        }
        if (values.remove === true) {
          const variable = variableOf(name)
          const isGone = await parts.removeCredential(values.data, variable)
          if (!isGone) terminal.complain(`echs login: no key is stored for ${variable}\n`)
          else answer({ removed: variable }, () => `${variable} forgotten\n`)
          return isGone ? exitCode.done : exitCode.notFound
        }
        const variable = await store(parts, { data: values.data, name, terminal })
        if (variable === undefined) {
          terminal.complain("echs login: nothing was entered; nothing is changed\n")
          return exitCode.interrupted
        }
        answer({ stored: variable }, () => `${variable} stored; it is used from the next request on\n`)
        return exitCode.done
      })
  })
