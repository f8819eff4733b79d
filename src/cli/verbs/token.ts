// `echs token`: prints where the access token is stored; creates and removes named tokens. Needs no server.
import { reportingSettings, type SettingsFailure } from "../shared/Settings.ts"
import { exitCode, type Verb } from "../Verb.ts"
import { dataOption, makeVerb, oneOf, UsageError } from "../VerbSpec.ts"

export interface NamedTokenInfo {
  readonly name: string
  readonly role: string
  readonly token?: string
}

export interface TokenParts extends SettingsFailure {
  readonly tokens: (data: string | undefined) => Promise<{
    readonly path: string
    readonly exists: boolean
    readonly named_path: string
    readonly named: ReadonlyArray<NamedTokenInfo>
  }>
  /** Undefined when a token of this name exists. */
  readonly createToken: (
    data: string | undefined,
    name: string,
    role: "viewer" | "operator" | "admin"
  ) => Promise<NamedTokenInfo | undefined>
  readonly removeToken: (data: string | undefined, name: string) => Promise<boolean>
}

export const make = (parts: TokenParts): Verb =>
  makeVerb({
    name: "token",
    takes: "[create NAME | remove NAME]",
    positionals: { min: 0, max: 2 },
    options: { data: dataOption, role: { type: "string", value: "ROLE", help: "viewer (default), operator or admin" } },
    example: "echs token create dashboard --role viewer",
    notes: ["A named token is printed once, when it is created. The server accepts it after its next start."],
    run: async ({ answer, positionals: [action, name], terminal, values }) =>
      reportingSettings(parts, { verb: "token", terminal }, async () => {
        if (action === undefined) {
          const found = await parts.tokens(values.data)
          const named = found.named.map(({ name: one, role }) => ({ name: one, role }))
          answer({ ...found, named }, () =>
            [
              `${found.path}${found.exists ? "" : terminal.paint("quiet", "  (created when the server first starts)")}\n`,
              ...named.map((one) => `${terminal.paint("strong", one.name)}  ${one.role}\n`)
            ].join("")
          )
          return exitCode.done
        }
        if (name === undefined || !/^[\w.-]{1,64}$/.test(name))
          throw new UsageError(
            "NAME must consist of letters, digits, dots, dashes and underscores, 64 characters at most"
          )
        if (action === "remove") {
          const isGone = await parts.removeToken(values.data, name)
          if (!isGone) terminal.complain(`echs token: no token named "${name}"\n`)
          else answer({ removed: name }, () => `${name} removed; the server accepts it until it is restarted\n`)
          return isGone ? exitCode.done : exitCode.notFound
        }
        if (action !== "create") throw new UsageError(`unknown action "${action}"; use create or remove`)
        const created = await parts.createToken(
          values.data,
          name,
          oneOf("role", values.role, ["viewer", "operator", "admin"]) ?? "viewer"
        )
        if (created === undefined) terminal.complain(`echs token: a token named "${name}" already exists\n`)
        else answer(created, () => `${created.token ?? ""}\n`)
        return created === undefined ? exitCode.refusedByState : exitCode.done
      })
  })
