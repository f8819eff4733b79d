// `echs models`: which models could answer, whether their key is set, and what they cost. Needs no server.
import { number, table } from "../render/Text.ts"
import { reportingSettings, type SettingsFailure } from "../shared/Settings.ts"
import { exitCode, type Verb } from "../Verb.ts"
import { dataOption, makeVerb } from "../VerbSpec.ts"

export interface ListedModel {
  readonly model: string
  readonly context_tokens: number
  /** US dollars per million tokens; null where no price is known. */
  readonly input_usd: number | null
  readonly output_usd: number | null
  /** Null when it could be called now, else what is missing. */
  readonly missing: string | null
  readonly is_default: boolean
}

export interface ModelsParts extends SettingsFailure {
  readonly models: (data: string | undefined) => Promise<ReadonlyArray<ListedModel>>
}

const priceText = ({ input_usd: input, output_usd: output }: ListedModel): string =>
  input === null || output === null ? "price unknown" : `$${input} in, $${output} out`

export const make = (parts: ModelsParts): Verb =>
  makeVerb({
    name: "models",
    takes: "[TEXT]",
    positionals: { min: 0, max: 1 },
    options: { data: dataOption, usable: { type: "boolean", help: "only models that could be called now" } },
    example: "echs models claude",
    notes: [
      "Prices are US dollars per million tokens. Other models of a provider can be used by name; their cost is unknown."
    ],
    run: async ({ answer, positionals: [text = ""], terminal, values }) =>
      reportingSettings(parts, { verb: "models", terminal }, async () => {
        const all = await parts.models(values.data)
        const items = all.filter(
          ({ missing, model }) => model.includes(text.toLowerCase()) && (values.usable !== true || missing === null)
        )
        const rows = items.map((item) => [
          item.is_default ? "*" : " ",
          item.model,
          `${number(item.context_tokens)} tokens`,
          priceText(item),
          item.missing ?? "ready"
        ])
        answer({ items }, () =>
          items.length === 0
            ? "no model matches\n"
            : table(rows, terminal)
                .map(
                  ([mark = "", name = "", ...rest]) => `${mark} ${terminal.paint("strong", name)}  ${rest.join("  ")}\n`
                )
                .join("")
        )
        return exitCode.done
      })
  })
