// What a holder and its clients say to each other over a local socket: one byte of type, four of length, then the
// content. Bytes of the terminal pass as they are; everything else is JSON.
import { harnessLimits } from "../HarnessLimits.ts"
import type { ProgramStatus } from "../Port.ts"

export const frameTypes = {
  hello: 1,
  welcome: 2,
  output: 3,
  input: 4,
  resize: 5,
  status: 6,
  exit: 7,
  signal: 8,
  leave: 9,
  refused: 10
} as const

export interface Size {
  readonly columns: number
  readonly rows: number
}

export type Role =
  /** Sees and types; one at a time. */
  | "typist"
  | "viewer"
  /** Hears states and the end, sees no output, and may send input: the server. */
  | "observer"

export interface Hello extends Partial<Size> {
  readonly role: Role
  /** The program hangs up when this client goes without saying so. */
  readonly owner?: boolean
}

export interface Welcome extends Size {
  /** As it is: a second typist becomes a viewer. */
  readonly role: Role
  readonly pid: number
  readonly startedMs: number
}

export interface Exit {
  readonly exitCode: number
  readonly signal: number | null
}

export type Frame =
  | { readonly type: "hello"; readonly value: Hello }
  | { readonly type: "welcome"; readonly value: Welcome }
  | { readonly type: "output" | "input"; readonly bytes: Uint8Array }
  | { readonly type: "resize"; readonly value: Size }
  | { readonly type: "status"; readonly value: ProgramStatus }
  | { readonly type: "exit"; readonly value: Exit }
  | { readonly type: "signal"; readonly value: { readonly signal: string } }
  | { readonly type: "leave"; readonly value: Record<never, never> }
  | { readonly type: "refused"; readonly value: { readonly reason: string } }

type FrameType = keyof typeof frameTypes

const headerBytes = 5
const names = new Map<number, FrameType>(Object.entries(frameTypes).map(([name, code]) => [code, name as FrameType]))

export const encodeFrame = (frame: Frame): Buffer => {
  const content = "bytes" in frame ? frame.bytes : Buffer.from(JSON.stringify(frame.value))
  const buffer = Buffer.allocUnsafe(headerBytes + content.length)
  buffer.writeUInt8(frameTypes[frame.type], 0)
  buffer.writeUInt32LE(content.length, 1)
  buffer.set(content, headerBytes)
  return buffer
}

export class FrameInvalid extends Error {
  override readonly name = "FrameInvalid"
}

const decoded = (code: number, content: Buffer): Frame => {
  const type = names.get(code)
  if (type === undefined) throw new FrameInvalid(`frame type ${code} is unknown`)
  if (type === "output" || type === "input") return { type, bytes: content }
  try {
    // The other side is our own program; what it means by a value is checked where it is used.
    return { type, value: JSON.parse(content.toString("utf8")) } as Frame
  } catch {
    throw new FrameInvalid("a frame is not JSON")
  }
}

/** Cuts a stream into frames. */
export class FrameReader {
  private pieces: Array<Buffer> = []
  private held = 0

  push(piece: Buffer): ReadonlyArray<Frame> {
    this.pieces.push(piece)
    this.held += piece.length
    const frames: Array<Frame> = []
    for (let frame = this.next(); frame !== undefined; frame = this.next()) frames.push(frame)
    return frames
  }

  private next(): Frame | undefined {
    if (this.held < headerBytes) return undefined
    const [first, ...more] = this.pieces
    const whole = first !== undefined && more.length === 0 ? first : Buffer.concat(this.pieces)
    this.pieces = [whole]
    const length = whole.readUInt32LE(1)
    if (length > harnessLimits.frameBytesMax) throw new FrameInvalid(`a frame of ${length} bytes is too large`)
    const end = headerBytes + length
    if (whole.length < end) return undefined
    this.pieces = whole.length === end ? [] : [whole.subarray(end)]
    this.held = whole.length - end
    return decoded(whole.readUInt8(0), whole.subarray(headerBytes, end))
  }
}
