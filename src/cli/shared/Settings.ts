// What `config` and `token` share: an expected failure of the settings ends in one line instead of a stack trace.
import { type ExitCode, exitCode, type Terminal } from "../Verb.ts"
import { UsageError } from "../VerbSpec.ts"

export interface SettingsFailure {
  /** The message of a failure that a person can fix; undefined for a defect. */
  readonly settingsFailure: (error: unknown) => Promise<string | undefined>
}

export const reportingSettings = async (
  parts: SettingsFailure,
  to: { readonly verb: string; readonly terminal: Terminal },
  work: () => Promise<ExitCode>
): Promise<ExitCode> => {
  try {
    return await work()
  } catch (error) {
    const reason = error instanceof UsageError ? undefined : await parts.settingsFailure(error)
    if (reason === undefined) throw error
    to.terminal.complain(`echs ${to.verb}: ${reason}\n`)
    return exitCode.failed
  }
}
