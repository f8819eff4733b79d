// The screen of a program as a terminal would show it, kept without one: what a viewer who comes later is shown, and the
// answers to what the program asks its terminal while nobody watches.
import { createRequire } from "node:module"
import { harnessLimits } from "../HarnessLimits.ts"
import type { Size } from "./Frames.ts"

type Headless = typeof import("@xterm/headless")
type Serialize = typeof import("@xterm/addon-serialize")

export interface Screen {
  readonly behindBytes: number
  readonly write: (bytes: Uint8Array, onRead: () => void) => void
  readonly resize: (size: Size) => void
  readonly serialize: () => string
  readonly onAnswer: (hear: (text: string) => void) => void
}

export const makeScreen = ({ columns, rows }: Size): Screen => {
  const require = createRequire(import.meta.url)
  const { Terminal }: Headless = require("@xterm/headless")
  const { SerializeAddon }: Serialize = require("@xterm/addon-serialize")
  const scrollback = harnessLimits.scrollbackLines
  const terminal = new Terminal({ cols: columns, rows, scrollback, allowProposedApi: true })
  const addon = new SerializeAddon()
  // The add-on is typed for a terminal in a browser; it uses nothing that this one lacks.
  terminal.loadAddon(addon as unknown as Parameters<typeof terminal.loadAddon>[0])
  let behindBytes = 0
  return {
    get behindBytes() {
      return behindBytes
    },
    write: (bytes, onRead) => {
      behindBytes += bytes.length
      terminal.write(bytes, () => {
        behindBytes -= bytes.length
        onRead()
      })
    },
    resize: ({ columns: cols, rows: lines }) => terminal.resize(cols, lines),
    serialize: () => addon.serialize(),
    onAnswer: (hear) => void terminal.onData(hear)
  }
}
