// Puts a real terminal in front of a program that a holder runs: bytes pass unchanged both ways, the size follows the
// window, signals go to the program. Returns how the program ended, or that the person left it.
import type { Exit, Role } from "../holder/Frames.ts"
import { connectHolder, type HolderLink } from "../holder/HolderLink.ts"

type ReadStream = typeof process.stdin
type WriteStream = typeof process.stdout

export interface PassThroughOptions {
  readonly directory: string
  readonly role: Extract<Role, "typist" | "viewer">
  /** The program ends with this terminal. */
  readonly isOwner: boolean
  readonly stdin: ReadStream
  readonly stdout: WriteStream
  /** A key with which the person leaves and the program stays; none where every key belongs to the program. */
  readonly leaveKey?: number
  readonly onConnected?: (role: Role) => Promise<void>
}

export type PassThroughEnd =
  | { readonly _tag: "Exited"; readonly exit: Exit }
  | { readonly _tag: "Left" }
  /** The holder is gone, and nobody can say how the program ended. */
  | { readonly _tag: "Lost" }

const forwarded = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"] as const
const defaultSize = { columns: 80, rows: 24 }

const sizeOf = ({ columns, rows }: WriteStream) => ({
  columns: columns || defaultSize.columns,
  rows: rows || defaultSize.rows
})

/** Ends modes that a program switched on and did not end: mouse, paste, alternate screen, hidden cursor. */
const resetModes = "\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?1006l\u001b[?2004l\u001b[?1049l\u001b[?25h\u001b[0m"

export const passThrough = async (options: PassThroughOptions): Promise<PassThroughEnd> => {
  const { directory, isOwner, leaveKey, role, stdin, stdout } = options
  const end = Promise.withResolvers<PassThroughEnd>()
  let exit: Exit | undefined
  let link: HolderLink | undefined
  const output = (bytes: Uint8Array): void => {
    if (stdout.write(bytes)) return
    link?.pause()
    stdout.once("drain", () => link?.resume())
  }
  link = await connectHolder(
    directory,
    { role, owner: isOwner, ...sizeOf(stdout) },
    {
      frame: (frame) => {
        if (frame.type === "output") output(frame.bytes)
        if (frame.type === "exit") exit = frame.value
      },
      closed: () => end.resolve(exit === undefined ? { _tag: "Lost" } : { _tag: "Exited", exit })
    }
  )
  const connected = link
  const leave = (): void => {
    connected.send({ type: "leave", value: {} })
    end.resolve({ _tag: "Left" })
  }
  const onData = (bytes: Buffer): void => {
    if (leaveKey !== undefined && bytes.includes(leaveKey)) leave()
    else if (connected.welcome.role === "typist") connected.send({ type: "input", bytes })
  }
  const onResize = (): void => connected.send({ type: "resize", value: sizeOf(stdout) })
  const onSignal = (signal: NodeJS.Signals): void =>
    isOwner ? connected.send({ type: "signal", value: { signal } }) : leave()
  const isRaw = stdin.isTTY === true
  if (isRaw) stdin.setRawMode(true)
  stdin.on("data", onData)
  // A pipe that ends is the end of what the program reads.
  stdin.on("end", () => connected.send({ type: "input", bytes: Buffer.from([4]) }))
  stdout.on("resize", onResize)
  for (const signal of forwarded) process.on(signal, onSignal)
  try {
    await options.onConnected?.(connected.welcome.role)
    return await end.promise
  } finally {
    if (isRaw) stdin.setRawMode(false)
    if (stdout.isTTY === true && !isOwner) stdout.write(resetModes)
    stdin.off("data", onData)
    stdin.pause()
    stdout.off("resize", onResize)
    for (const signal of forwarded) process.off(signal, onSignal)
    connected.close()
  }
}
