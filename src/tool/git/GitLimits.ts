// Every limit of running git, in one table.

export const gitLimits = {
  /** Settings of one repository that name programs; each travels in the environment of every call. */
  overridesMax: 1_024,
  overrideCharsMax: 262_144,
  /** All settings of one repository. */
  settingsCharsMax: 1_048_576
} as const
