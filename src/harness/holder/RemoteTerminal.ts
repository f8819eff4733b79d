// The terminal of an agent for somebody who is connected to the server: bytes as they are, held back until they are wanted.
import type { AttachedTerminal, TerminalListener, TerminalRequest } from "../../contract/OutsideAgents.ts"
import type { Exit, Frame } from "./Frames.ts"
import { connectHolder } from "./HolderLink.ts"

const sizeOf = ({ columns, rows }: TerminalRequest) =>
  columns === undefined || rows === undefined ? {} : { columns, rows }

export const attachTerminal = async (
  directory: string,
  request: TerminalRequest,
  { ended, output }: TerminalListener
): Promise<AttachedTerminal> => {
  // The screen comes with the welcome; whoever asked is told it after the answer to that.
  let held: Array<() => void> | undefined = []
  const tell = (say: () => void): void => {
    if (held === undefined) say()
    else held.push(say)
  }
  let exit: Exit | undefined
  const frame = (one: Frame): void => {
    if (one.type === "output") tell(() => output(one.bytes))
    if (one.type === "exit") exit = one.value
  }
  const closed = (): void => {
    const { exitCode = null, signal = null } = exit ?? {}
    tell(() => ended({ exit_code: signal === null ? exitCode : null, signal }))
  }
  const role = request.isWatching ? "viewer" : "typist"
  const link = await connectHolder(directory, { role, ...sizeOf(request) }, { frame, closed })
  const { columns, role: given, rows } = link.welcome
  link.pause()
  return {
    role: given === "typist" ? "typist" : "viewer",
    columns,
    rows,
    input: (bytes) => link.send({ type: "input", bytes }),
    resize: (size) => link.send({ type: "resize", value: size }),
    pause: link.pause,
    resume: () => {
      const late = held ?? []
      held = undefined
      for (const say of late) say()
      link.resume()
    },
    leave: () => {
      // Nothing that is still on its way is wanted.
      held = []
      link.resume()
      link.send({ type: "leave", value: {} })
      link.close()
    }
  }
}
