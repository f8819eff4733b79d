// `echs completions`: prints a completion script for bash, zsh or fish. Generated from the verbs themselves, so that it
// is never out of date.

import { exitCode, type Verb, type VerbEntry } from "../Verb.ts"
import { makeVerb, UsageError } from "../VerbSpec.ts"

interface Completed {
  readonly name: string
  readonly summary: string
  readonly options: ReadonlyArray<string>
}

const shells = ["bash", "zsh", "fish"] as const
type Shell = (typeof shells)[number]

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

const bash = (
  verbs: ReadonlyArray<Completed>
): string => `# bash completion for echs; source it, or put it where bash-completion looks
_echs() {
  local current="\${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W ${quoted(verbs.map(({ name }) => name).join(" "))} -- "$current"))
    return
  fi
  case "\${COMP_WORDS[1]}" in
${verbs.map(({ name, options }) => `    ${name}) COMPREPLY=($(compgen -W ${quoted([...options, "--help"].join(" "))} -- "$current")) ;;`).join("\n")}
  esac
}
complete -o default -F _echs echs
`

const zsh = (verbs: ReadonlyArray<Completed>): string => `#compdef echs
# zsh completion for echs; save it as _echs in a directory of $fpath
_echs() {
  if (( CURRENT == 2 )); then
    local -a verbs=(
${verbs.map(({ name, summary }) => `      ${quoted(`${name}:${summary.replaceAll(":", " ")}`)}`).join("\n")}
    )
    _describe command verbs
    return
  fi
  case "$words[2]" in
${verbs.map(({ name, options }) => `    ${name}) compadd -- ${[...options, "--help"].join(" ")} ;;`).join("\n")}
  esac
  _files
}
_echs "$@"
`

const fish = (verbs: ReadonlyArray<Completed>): string =>
  [
    "# fish completion for echs; save it as ~/.config/fish/completions/echs.fish",
    ...verbs.map(
      ({ name, summary }) => `complete -c echs -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`
    ),
    ...verbs.flatMap(({ name, options }) =>
      options.map((option) => `complete -c echs -n '__fish_seen_subcommand_from ${name}' -l ${option.slice(2)}`)
    ),
    ""
  ].join("\n")

const scripts: { readonly [S in Shell]: (verbs: ReadonlyArray<Completed>) => string } = { bash, zsh, fish }

export interface CompletionsParts {
  /** Every verb of the command. */
  readonly verbs: () => ReadonlyArray<VerbEntry>
}

export const make = (parts: CompletionsParts): Verb =>
  makeVerb({
    name: "completions",
    takes: "SHELL",
    positionals: { min: 1, max: 1 },
    options: {},
    example: "source <(echs completions bash)",
    notes: ["SHELL is bash, zsh or fish. With --json, prints the verbs and their options instead."],
    run: async ({ answer, positionals: [asked] }) => {
      const shell = shells.find((one) => one === asked)
      if (shell === undefined) throw new UsageError(`SHELL must be one of: ${shells.join(", ")}`)
      const verbs = await Promise.all(
        parts.verbs().map(async ({ load, name, summary }) => ({
          name,
          summary,
          options: (await load()).options ?? ["--json"]
        }))
      )
      answer({ verbs }, () => scripts[shell](verbs))
      return exitCode.done
    }
  })
