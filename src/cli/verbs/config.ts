// `echs config`: prints every setting, its value and where it came from. Needs no server.
import { table } from "../render/Text.ts"
import { reportingSettings, type SettingsFailure } from "../shared/Settings.ts"
import { exitCode, type Verb } from "../Verb.ts"
import { dataOption, makeVerb } from "../VerbSpec.ts"

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
}

export const make = (parts: ConfigParts): Verb =>
  makeVerb({
    name: "config",
    options: { data: dataOption },
    example: "echs config --json",
    notes: ["Precedence: flag, environment, config.json in the data directory, default. Secrets are masked."],
    run: async ({ answer, terminal, values }) =>
      reportingSettings(parts, { verb: "config", terminal }, async () => {
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
  })
