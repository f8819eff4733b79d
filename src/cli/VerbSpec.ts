// Builds verbs from a table of options: the table is the argument parser, the usage text and the completions. Every verb
// has `--json` and an example. Wrong usage ends with exit code 2 and one line that says what was wrong.
import { parseArgs } from "node:util"
import { type ExitCode, exitCode, type Terminal, type Verb } from "./Verb.ts"

export interface OptionSpec {
  readonly type: "boolean" | "string"
  readonly short?: string
  /** Name of the value in the usage text. */
  readonly value?: string
  readonly help: string
  readonly multiple?: boolean
}

export type OptionTable = Readonly<Record<string, OptionSpec>>

type ValueOf<Spec extends OptionSpec> = Spec extends { readonly type: "boolean" }
  ? boolean
  : Spec extends { readonly multiple: true }
    ? ReadonlyArray<string>
    : string

export type Values<Table extends OptionTable> = {
  readonly [Name in keyof Table]?: ValueOf<Table[Name]> | undefined
} & {
  readonly json?: boolean | undefined
}

export interface VerbInput<Table extends OptionTable> {
  readonly values: Values<Table>
  readonly positionals: ReadonlyArray<string>
  readonly terminal: Terminal
  /** Prints the result as JSON or as text, whichever was requested. */
  readonly answer: (value: unknown, words: () => string) => void
}

export interface VerbSpec<Table extends OptionTable> {
  readonly name: string
  /** Positional arguments as the usage line shows them. */
  readonly takes?: string
  readonly positionals?: { readonly min: number; readonly max: number }
  readonly options: Table
  readonly example: string
  readonly notes?: ReadonlyArray<string>
  readonly run: (input: VerbInput<Table>) => Promise<ExitCode>
}

/** Wrong usage that only the verb itself can detect. */
export class UsageError extends Error {
  override readonly name = "UsageError"
}

/** `--data` of every verb that works on a data directory. */
export const dataOption = {
  type: "string",
  value: "DIRECTORY",
  help: "data directory (default: ECHS_DATA, then the user's state directory)"
} as const satisfies OptionSpec

const common = {
  json: { type: "boolean", help: "print machine-readable JSON and nothing else on standard output" }
} as const

export const makeVerb = <const Table extends OptionTable>(spec: VerbSpec<Table>): Verb => ({
  usage: usageOf(spec),
  options: Object.keys({ ...spec.options, ...common }).map((name) => `--${name}`),
  run: async (args, terminal) => {
    try {
      const { values, positionals } = read(spec, args)
      return await spec.run({ values, positionals, terminal, answer: answerTo(terminal, values.json === true) })
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      terminal.complain(`echs ${spec.name}: ${error.message}. Run "echs ${spec.name} --help" for usage.\n`)
      return exitCode.usage
    }
  }
})

const answerTo =
  (terminal: Terminal, isJson: boolean): VerbInput<OptionTable>["answer"] =>
  (value, words) =>
    terminal.write(isJson ? `${JSON.stringify(value)}\n` : words())

const read = <Table extends OptionTable>(spec: VerbSpec<Table>, args: ReadonlyArray<string>) => {
  const options = Object.fromEntries(
    Object.entries<OptionSpec>({ ...spec.options, ...common }).map(([name, { type, short, multiple }]) => [
      name,
      { type, ...(short === undefined ? {} : { short }), ...(multiple === undefined ? {} : { multiple }) }
    ])
  )
  const { min, max } = spec.positionals ?? { min: 0, max: 0 }
  const { values, positionals } = parse(args, options)
  if (positionals.length < min) throw new UsageError(`missing argument: expected ${spec.takes ?? "more arguments"}`)
  if (positionals.length > max) throw new UsageError(`unexpected argument "${positionals[max]}"`)
  return { values: values as Values<Table>, positionals }
}

type ParseOptions = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>["options"]>

const parse = (args: ReadonlyArray<string>, options: ParseOptions) => {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    const [reason] = (error instanceof Error ? error.message : String(error)).split(/\. |; /)
    throw new UsageError(reason?.replace(/\.$/, "") ?? "invalid usage")
  }
}

const usageOf = <Table extends OptionTable>(spec: VerbSpec<Table>): string => {
  const rows = Object.entries<OptionSpec>({ ...spec.options, ...common }).map(([name, option]) => {
    const short = option.short === undefined ? "" : `-${option.short}, `
    return [`${short}--${name}${option.type === "string" ? ` ${option.value ?? "VALUE"}` : ""}`, option.help] as const
  })
  const width = Math.max(...rows.map(([left]) => left.length))
  return [
    `usage: echs ${spec.name}${spec.takes === undefined ? "" : ` ${spec.takes}`} [options]`,
    "",
    ...rows.map(([left, help]) => `  ${left.padEnd(width)}  ${help}`),
    ...(spec.notes === undefined ? [] : ["", ...spec.notes]),
    "",
    `example: ${spec.example}`
  ].join("\n")
}

/** The value of a whole-number option; undefined when it was omitted. */
export const wholeNumber = (name: string, text: string | undefined, min = 0): number | undefined => {
  if (text === undefined) return undefined
  const value = Number(text)
  if (!/^\d{1,15}$/.test(text) || value < min)
    throw new UsageError(`--${name} must be a whole number, ${min} or greater`)
  return value
}

export const oneOf = <const Choice extends string>(
  name: string,
  text: string | undefined,
  choices: ReadonlyArray<Choice>
): Choice | undefined => {
  if (text === undefined) return undefined
  const found = choices.find((choice) => choice === text)
  if (found === undefined) throw new UsageError(`--${name} must be one of: ${choices.join(", ")}`)
  return found
}
