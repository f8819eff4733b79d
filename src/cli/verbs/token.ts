// What is set and what is installed: `config`, `token` and `doctor`. None of them needs a server.

import { oneLine, table } from "../render/Text.ts"
import { exitCode, type Terminal, type Tone, type Verb } from "../Verb.ts"
import { makeVerb, oneOf, UsageError } from "../VerbSpec.ts"

export interface ShownSetting {
  readonly name: string
  /** Masked when it is a secret. */
  readonly value: string | null
  readonly source: string
  readonly variable: string
}

export interface NamedTokenInfo {
  readonly name: string
  readonly role: string
  readonly token?: string
}

export interface Finding {
  readonly name: string
  readonly level: "good" | "notice" | "bad"
  readonly text: string
}

export interface SettingsParts {
  /** Throws an error with a message for people when config.json cannot be read. */
  readonly settings: (data: string | undefined) => {
    readonly config_path: string
    readonly items: ReadonlyArray<ShownSetting>
  }
  readonly expected: (error: unknown) => string | undefined
  readonly tokens: (data: string | undefined) => {
    readonly path: string
    readonly exists: boolean
    readonly named_path: string
    readonly named: ReadonlyArray<NamedTokenInfo>
  }
  readonly createToken: (
    data: string | undefined,
    name: string,
    role: "viewer" | "operator" | "admin"
  ) => NamedTokenInfo | undefined
  readonly removeToken: (data: string | undefined, name: string) => boolean
  readonly examine: (data: string | undefined) => Promise<ReadonlyArray<Finding>>
}

const dataOption = {
  data: { type: "string", value: "DIRECTORY", help: "data directory; else ECHS_DATA, else the user's state directory" }
} as const

/** Errors that a person can do something about end in a line, not in a stack trace. */
const guarded = (parts: SettingsParts, name: string, terminal: Terminal, work: () => number): number => {
  try {
    return work()
  } catch (error) {
    const reason = error instanceof UsageError ? undefined : parts.expected(error)
    if (reason === undefined) throw error
    terminal.complain(`echs ${name}: ${reason}\n`)
    return exitCode.failed
  }
}

export const makeConfig = (parts: SettingsParts): Verb =>
  makeVerb({
    name: "config",
    options: dataOption,
    example: "echs config --json",
    notes: ["Precedence: flag, environment, config.json in the data directory, default. Secrets are masked."],
    run: async ({ answer, terminal, values }) =>
      guarded(parts, "config", terminal, () => {
        const { config_path: path, items } = parts.settings(values.data)
        answer({ config_path: path, items }, () => {
          const rows = items.map(({ name, source, value, variable }) => [name, source, variable, value ?? "not set"])
          const lines = table(rows, terminal).map(
            ([name = "", source = "", variable = "", value = ""]) =>
              `${terminal.paint("strong", name)}  ${terminal.paint("quiet", source)}  ${terminal.paint("quiet", variable)}  ${value}\n`
          )
          return `${lines.join("")}${terminal.paint("quiet", `file: ${path}`)}\n`
        })
        return exitCode.done
      }) as 0
  })

export const makeToken = (parts: SettingsParts): Verb =>
  makeVerb({
    name: "token",
    takes: "[create NAME | remove NAME]",
    positionals: { min: 0, max: 2 },
    options: { ...dataOption, role: { type: "string", value: "ROLE", help: "viewer (default), operator or admin" } },
    example: "echs token create dashboard --role viewer",
    notes: ["Named tokens are shown once, when they are made, and taken up when the server starts the next time."],
    run: async ({ answer, positionals: [action, name], terminal, values }) =>
      guarded(parts, "token", terminal, () => {
        if (action === undefined) {
          const found = parts.tokens(values.data)
          const named = found.named.map(({ name: one, role }) => ({ name: one, role }))
          answer({ ...found, named }, () =>
            [
              `${found.path}${found.exists ? "" : terminal.paint("quiet", "  (made when the server starts for the first time)")}\n`,
              ...named.map((one) => `${terminal.paint("strong", one.name)}  ${one.role}\n`)
            ].join("")
          )
          return exitCode.done
        }
        if (name === undefined || !/^[\w.-]{1,64}$/.test(name))
          throw new UsageError("takes a NAME of letters, digits, dots and dashes")
        if (action === "remove") {
          const isGone = parts.removeToken(values.data, name)
          if (!isGone) terminal.complain(`echs token: there is no token "${name}"\n`)
          else answer({ removed: name }, () => `${name} removed; it works until the server stops\n`)
          return isGone ? exitCode.done : exitCode.notFound
        }
        if (action !== "create") throw new UsageError(`does not know "${action}"`)
        const created = parts.createToken(
          values.data,
          name,
          oneOf("role", values.role, ["viewer", "operator", "admin"]) ?? "viewer"
        )
        if (created === undefined) terminal.complain(`echs token: there is a token "${name}" already\n`)
        else answer(created, () => `${created.token ?? ""}\n`)
        return created === undefined ? exitCode.refusedByState : exitCode.done
      }) as 0
  })

const tones: Readonly<Record<Finding["level"], readonly [Tone, string]>> = {
  good: ["good", "✓"],
  notice: ["notice", "!"],
  bad: ["bad", "✗"]
}

export const makeDoctor = (parts: SettingsParts): Verb =>
  makeVerb({
    name: "doctor",
    options: dataOption,
    example: "echs doctor",
    notes: ["Exit code 1 when something is wrong that keeps ECHS from working."],
    run: async ({ answer, terminal, values }) => {
      const items = await parts.examine(values.data)
      const isWell = items.every(({ level }) => level !== "bad")
      const width = Math.max(...items.map(({ name }) => name.length))
      answer({ well: isWell, items }, () =>
        items
          .map(({ level, name, text }) => {
            const [tone, mark] = tones[level]
            return `${terminal.paint(tone, mark)} ${terminal.paint("strong", name.padEnd(width))}  ${oneLine(text)}\n`
          })
          .join("")
      )
      return isWell ? exitCode.done : exitCode.failed
    }
  })
