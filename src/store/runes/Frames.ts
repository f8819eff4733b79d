// Pages of the log as they lie there: bodies are runes, ready for the wire.
export {
  FRAME_HEADER_BYTES,
  flag as frameFlag,
  frameBytes,
  frameEventId,
  frameFlags,
  frameKind,
  frameKindOf,
  frameLastId
} from "#runelog/Frame.ts"
export type { Frame, Page, RawPage, RawRequest } from "#runelog/segment/Reader.ts"
