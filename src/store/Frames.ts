// Pages of the log as they lie there: bodies are runes, ready for the wire.
export type { Frame, Page } from "#runelog/Reader.ts"
