// Starts a prepared command: its descriptors are filled and closed, nothing of this process's environment goes along,
// and it leads a process group of its own.
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process"
import type { Writable } from "node:stream"
import type { SandboxedCommand } from "./SandboxPort.ts"

export type Stdio = "pipe" | "ignore"

export interface SpawnParts {
  readonly command: SandboxedCommand
  /** Standard input, output, error, and the command's own descriptors from 3 on. */
  readonly stdio: ReadonlyArray<Stdio>
}

export const spawnSandboxed = ({ command, stdio }: SpawnParts): ChildProcess => {
  const gates = command.gate === undefined ? [] : (["pipe"] as const)
  const options: SpawnOptions = {
    cwd: command.directory,
    env: { ...command.environment },
    detached: process.platform !== "win32",
    stdio: [...stdio, ...gates, ...command.descriptors.map(() => "pipe" as const)]
  }
  const child = spawn(command.file, [...command.args], options)
  command.descriptors.forEach((bytes, index) => {
    const descriptor = child.stdio[stdio.length + gates.length + index] as Writable | null | undefined
    // It may end before it has read them: how it ended says more than that.
    descriptor?.on("error", () => undefined)
    descriptor?.end(bytes)
  })
  return child
}
