// Frames that are pushed to a subscription, typed by the schemas of the wire. Runes are the exception: their frames are made
// from stored bytes (`frameAll`), without parsing them.
import type { PushedFrame } from "../../wire/Frames.ts"
import { textFrame } from "./WebSocketFrame.ts"

export const pushedFrame = (frame: PushedFrame): Buffer => textFrame(JSON.stringify(frame))
