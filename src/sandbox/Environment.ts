// What commands find in their environment: names that say how to work, never names that hold keys. Everything that is
// not listed stays with the server.

const allowedNames: ReadonlySet<string> = new Set([
  ...[
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "USER",
    "LOGNAME",
    "SHELL"
  ],
  ...["EDITOR", "VISUAL", "PAGER", "HOSTNAME", "CI", "JAVA_HOME", "GOROOT", "GOPATH", "RUSTUP_HOME", "CARGO_HOME"],
  ...["NVM_DIR", "VOLTA_HOME", "PYENV_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "DENO_DIR", "BUN_INSTALL", "PNPM_HOME"]
])

const isAllowed = (name: string): boolean => allowedNames.has(name) || name.startsWith("LC_")

/** Nobody can answer a question that a program asks on a terminal. */
const quiet: Readonly<Record<string, string>> = { GIT_TERMINAL_PROMPT: "0", DEBIAN_FRONTEND: "noninteractive" }

const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/** The part of an environment that commands may have. */
export const allowedEnvironment = (
  variables: Readonly<Record<string, string | undefined>>
): Readonly<Record<string, string>> => {
  const kept = Object.entries(variables).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && isAllowed(entry[0])
  )
  return { PATH: usualPath, ...quiet, ...Object.fromEntries(kept) }
}
