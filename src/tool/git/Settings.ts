// The settings of git under which it starts no program of a repository. They are handed over in the environment, name and
// value apart: on a command line git splits them at the first `=`, and a name may hold one. Which settings of a family a
// repository has is known only from the repository; all of them are overridden by the name that git itself prints.
import { GitRefused } from "./GitErrors.ts"
import { gitLimits } from "./GitLimits.ts"

export type Setting = readonly [name: string, value: string]
export type Environment = Readonly<Record<string, string>>

/** Settings that start programs, as they are when they start none. */
export const switchedOff: ReadonlyArray<Setting> = [
  ["core.hooksPath", "/dev/null"],
  ["core.fsmonitor", "false"],
  ["core.pager", "cat"],
  ["core.editor", "false"],
  ["core.askPass", "false"],
  ["core.sshCommand", "false"],
  ["core.gitProxy", "false"],
  ["core.alternateRefsCommand", "false"],
  ["core.attributesFile", "/dev/null"],
  ["sequence.editor", "false"],
  ["credential.helper", ""],
  ["diff.external", ""],
  ["diff.submodule", "short"],
  ["interactive.diffFilter", ""],
  ["commit.gpgSign", "false"],
  ["tag.gpgSign", "false"],
  ["log.showSignature", "false"],
  ["gpg.program", "false"],
  ["gpg.ssh.program", "false"],
  ["gpg.ssh.defaultKeyCommand", "false"],
  ["gc.auto", "0"],
  ["maintenance.auto", "false"],
  ["protocol.allow", "never"],
  ["submodule.recurse", "false"],
  ["diff.ignoreSubmodules", "dirty"],
  ["status.submoduleSummary", "false"],
  ["safe.bareRepository", "explicit"],
  // Owners look different inside the sandbox; they must not count as changes, nor hide any.
  ["core.checkStat", "minimal"],
  ["core.trustctime", "false"],
  // The programs of a repository are off; whose it is makes no difference then.
  ["safe.directory", "*"]
]

/** Variables that say the same for what git reads elsewhere than in its settings. */
export const quietEnvironment: Environment = {
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
  GIT_LITERAL_PATHSPECS: "1",
  GIT_PAGER: "cat",
  GIT_EDITOR: "false",
  GIT_SEQUENCE_EDITOR: "false",
  GIT_NO_LAZY_FETCH: "1",
  // Stands above every setting of a protocol.
  GIT_ALLOW_PROTOCOL: "none",
  LC_ALL: "C.UTF-8"
}

/** Families of settings whose members name programs. A name between the dots may be empty, and hold anything. */
const families: ReadonlyArray<readonly [RegExp, string]> = [
  [/^filter\..*\.(clean|smudge|process)$/isu, ""],
  [/^filter\..*\.required$/isu, "false"],
  [/^diff\..*\.(command|textconv)$/isu, ""],
  // A merge whose driver does not run is a conflict; an empty driver would keep one side and say nothing. The shell
  // ends by itself: programs are not found.
  [/^merge\..*\.driver$/isu, "exit 1"],
  [/^gpg\..*\.(program|defaultkeycommand)$/isu, "false"],
  [/^credential\..*\.helper$/isu, ""],
  [/^trailer\..*\.(command|cmd)$/isu, ""],
  [/^protocol\..*\.allow$/isu, "never"],
  [/^submodule\..*\.update$/isu, "none"],
  [/^pager\..*$/isu, "false"]
]

const configuredHook = /^(hook\..*)\.(command|event)$/isu

/** What git would read instead of a character that is not there in UTF-8. */
const replacement = "\uFFFD"

const overridesOf = (name: string): ReadonlyArray<Setting> => {
  const hook = configuredHook.exec(name)
  const found: ReadonlyArray<Setting> =
    hook === null
      ? families.filter(([family]) => family.test(name)).map(([, value]) => [name, value] as const)
      : [[`${hook[1]}.enabled`, "false"]]
  if (found.length > 0 && name.includes(replacement))
    throw new GitRefused("git_failed", `a setting of the repository has a name that is not UTF-8: ${name}`)
  return found
}

/** Settings as `git config --list -z` prints them; the last of a name counts. */
export const settingsIn = (listed: string): ReadonlyMap<string, string> =>
  new Map(
    listed
      .split("\0")
      .filter((entry) => entry !== "")
      .map((entry) => {
        const end = entry.indexOf("\n")
        return end < 0 ? [entry, ""] : [entry.slice(0, end), entry.slice(end + 1)]
      })
  )

/** As git prints a name: what stands between the first and the last dot is kept, the rest is in small letters. */
const printed = (name: string): string => {
  const [first, last] = [name.indexOf("."), name.lastIndexOf(".")]
  return `${name.slice(0, first).toLowerCase()}${name.slice(first, last)}${name.slice(last).toLowerCase()}`
}

/** Throws GitRefused when git did not take the settings: one before 2.31 does not know of this way. */
export const checkTaken = (listed: ReadonlyMap<string, string>): void => {
  const missed = switchedOff.find(([name, value]) => listed.get(printed(name)) !== value)
  if (missed !== undefined)
    throw new GitRefused("git_failed", `this git does not take ${missed[0]} from the environment; 2.31 and later do`)
}

/** Every setting of the repository that names a program, as one that names none. */
export const harmless = (listed: ReadonlyMap<string, string>): ReadonlyArray<Setting> => {
  const overrides = [...listed.keys()].flatMap(overridesOf)
  const chars = overrides.reduce((sum, [name]) => sum + name.length, 0)
  if (overrides.length > gitLimits.overridesMax || chars > gitLimits.overrideCharsMax)
    throw new GitRefused("git_failed", "the repository has too many settings that name programs")
  return overrides
}

/** Settings as variables; later ones of the same name count. */
export const asEnvironment = (settings: ReadonlyArray<Setting>): Environment =>
  Object.fromEntries([
    ["GIT_CONFIG_COUNT", String(settings.length)],
    ...settings.flatMap(([name, value], at) => [
      [`GIT_CONFIG_KEY_${at}`, name],
      [`GIT_CONFIG_VALUE_${at}`, value]
    ])
  ])
