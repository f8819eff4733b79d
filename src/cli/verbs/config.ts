// `echs config`: prints every setting, its value and where it came from; sets and removes those of config.json, checked
// as the server would. Needs no server.
import { table } from "../render/Text.ts"
import { reportingSettings, type SettingsFailure } from "../shared/Settings.ts"
import { type ExitCode, exitCode, type Verb } from "../Verb.ts"
import { dataOption, makeVerb, type OptionTable, UsageError, type VerbInput } from "../VerbSpec.ts"

export interface ShownSetting {
  readonly name: string
  /** Masked when it is a secret. */
  readonly value: string | null
  readonly source: string
  readonly variable: string
}

export interface ConfigParts extends SettingsFailure {
  /** Rejects with a message for people when config.json cannot be read. */
  readonly settings: (data: string | undefined) => Promise<{
    readonly config_path: string
    readonly items: ReadonlyArray<ShownSetting>
  }>
  /** Sets a setting of config.json, or with undefined removes it; rejects with what is wrong with it. */
  readonly changeSetting: (data: string | undefined, name: string, value: unknown) => Promise<void>
}

/** JSON where it is JSON, else the text itself. */
const valueOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const change = async (
  parts: ConfigParts,
  { answer, positionals: [action, name, text], values }: VerbInput<typeof options>
): Promise<ExitCode> => {
  if (name === undefined || (action === "set") !== (text !== undefined))
    throw new UsageError('use "get NAME", "set NAME VALUE" or "unset NAME"')
  if (action === "get") {
    const found = (await parts.settings(values.data)).items.find((one) => one.name === name)
    if (found === undefined) throw new UsageError(`there is no setting "${name}"; "echs config" lists them`)
    answer(found, () => `${found.value ?? ""}\n`)
    return exitCode.done
  }
  if (action !== "set" && action !== "unset") throw new UsageError(`unknown action "${action}"; use get, set or unset`)
  await parts.changeSetting(values.data, name, text === undefined ? undefined : valueOf(text))
  answer(
    { changed: name },
    () => `${name} ${action === "set" ? "set" : "removed"}; a running server uses it after a restart\n`
  )
  return exitCode.done
}

const options = { data: dataOption } as const satisfies OptionTable

export const make = (parts: ConfigParts): Verb =>
  makeVerb({
    name: "config",
    takes: "[get NAME | set NAME VALUE | unset NAME]",
    positionals: { min: 0, max: 3 },
    options,
    example: "echs config set model anthropic/claude-sonnet-5-5",
    notes: [
      "Precedence: flag, environment, config.json in the data directory, default. Secrets are masked.",
      "VALUE is JSON or text. An invalid value is refused and nothing is changed."
    ],
    run: async (input) => {
      const { answer, positionals, terminal, values } = input
      return reportingSettings(parts, { verb: "config", terminal }, async () => {
        if (positionals.length > 0) return change(parts, input)
        const { config_path: path, items } = await parts.settings(values.data)
        answer({ config_path: path, items }, () => {
          const rows = items.map(({ name, source, value, variable }) => [name, source, variable, value ?? "not set"])
          const lines = table(rows, terminal).map(
            ([name = "", source = "", variable = "", value = ""]) =>
              `${terminal.paint("strong", name)}  ${terminal.paint("quiet", source)}  ${terminal.paint("quiet", variable)}  ${value}\n`
          )
          return `${lines.join("")}${terminal.paint("quiet", `file: ${path}`)}\n`
        })
        return exitCode.done
      })
    }
  })
