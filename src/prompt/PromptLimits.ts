// The limits of what a model is told about where it works.
export const limits = {
  /** Of all instruction files in one prompt or note; beyond it they are cut, and the cut is marked. */
  filesCharsMax: 32_768,
  /** The same as a share of the model's context: the rest belongs to the work. */
  contextShare: 0.25,
  charsPerToken: 3,
  /** Never less than this, however small the context. */
  filesCharsMin: 2048,
  /** Larger instruction files are not read to their end. */
  fileBytesMax: 131_072,
  /** How far an import may import, and files that one instruction file may bring along. */
  importDepthMax: 5,
  importsMax: 32,
  /** Directories between the repository's root and the workspace that are looked at. */
  directoriesAboveMax: 32,
  /** Directories the agent has touched that are looked at, the newest first. */
  directoriesTouchedMax: 32,
  /** Lines of `git status` that are told, and how long git may take for them. */
  gitLinesMax: 20,
  gitTimeoutMs: 5000
} as const
