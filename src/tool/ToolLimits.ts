// Every number of the router, in one table.

const KIB = 1024

export const limits = {
  /** Output of a call that is kept inline, head and tail together, unless its tool says otherwise. */
  outputCharsMax: 60 * KIB,
  /** Calls whose decision is remembered between their start and their run; the oldest goes, and is decided again. */
  decisionsMax: 4_096,
  /** Compiled schemas that are kept; the one unused for longest goes first. */
  schemasMax: 512,
  /** A larger schema is not compiled: of its arguments only the outer shape is checked. */
  schemaCharsMax: 256 * KIB,
  /** Nor is one from outside that is nested deeper. */
  schemaLevelsMax: 64,
  /** Problems with arguments that are told at once. */
  problemsMax: 5,
  /** A question does not wait longer for what it could show. */
  previewMsMax: 5_000,
  /** Parts of what a person is shown; what is longer is cut, and says so. */
  shownTitleCharsMax: 512,
  shownDetailCharsMax: 32 * KIB,
  shownDiffCharsMax: 128 * KIB
} as const
