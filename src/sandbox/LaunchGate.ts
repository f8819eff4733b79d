// The way into a sandbox that was made: it says on a descriptor of its own how it stands, what is mounted inside is
// compared with the plan, and only then is the program let in. Nothing that a program prints is ever taken for a word of
// the sandbox, and one whose server is gone finds the gate closed and ends.
import type { ChildProcess } from "node:child_process"
import type { Duplex } from "node:stream"
import { sandboxLimits } from "./SandboxLimits.ts"
import type { Gate } from "./SandboxPort.ts"

export const goWord = "go"

export type GateAnswer =
  /** The program has begun. */
  | { readonly _tag: "Open" }
  /** The sandbox could not be made; why, when it said so here. */
  | { readonly _tag: "Failed"; readonly reason: string | undefined }
  /** It was made, or would have been, and is not what was planned. */
  | { readonly _tag: "Violated"; readonly reason: string }

const answerOf = (said: string): GateAnswer => {
  const reason = said.slice(1).trim()
  return said.startsWith("v") ? { _tag: "Violated", reason } : { _tag: "Failed", reason: reason || undefined }
}

/** Lets the program in when the sandbox is as planned, and says so before the program can say anything. */
export const passGate = (
  child: ChildProcess,
  gate: Gate,
  onOpen: () => void = () => undefined
): Promise<GateAnswer> => {
  const control = child.stdio[gate.descriptor] as Duplex | null | undefined
  if (control === null || control === undefined) return Promise.resolve({ _tag: "Failed", reason: undefined })
  return new Promise((resolve) => {
    let said = ""
    const judge = (): void => {
      const difference = gate.difference(child.pid ?? 0)
      if (difference === undefined) {
        onOpen()
        control.end(`${goWord}\n`)
      } else control.destroy()
      resolve(difference === undefined ? { _tag: "Open" } : { _tag: "Violated", reason: difference })
    }
    control.on("data", (bytes: Buffer) => {
      if (said === "" && bytes[0] === 0x72) judge()
      if (said.length < sandboxLimits.complaintBytesMax) said += bytes.toString("utf8")
    })
    // Whoever is at the other end may be gone already.
    control.on("error", () => undefined)
    control.once("close", () => resolve(answerOf(said)))
  })
}
