// The client side of a holder: connects, says who it is, and hands over what the holder says. Starting a holder, and waiting
// until it can be reached, is here too.
import { spawn } from "node:child_process"
import { closeSync, openSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { encodeFrame, type Frame, FrameReader, type Hello, type Welcome } from "./Frames.ts"
import { type LaunchFile, launchPath, socketPath, writePrivate } from "./HolderFiles.ts"

export interface HolderLink {
  readonly welcome: Welcome
  readonly send: (frame: Frame) => void
  /** Takes nothing more from the holder for a while: the program waits with it. */
  readonly pause: () => void
  readonly resume: () => void
  /** Bytes that the holder has not taken yet. */
  readonly behindBytes: () => number
  readonly close: () => void
}

export interface HolderListener {
  readonly frame: (frame: Frame) => void
  /** The connection is over, whoever ended it. */
  readonly closed: () => void
}

export class HolderUnreachable extends Error {
  override readonly name = "HolderUnreachable"
}

const opened = (path: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(path)
    socket.once("connect", () => resolve(socket))
    socket.once("error", (error) => reject(new HolderUnreachable(error.message)))
  })

/** Resolves when the holder has welcomed us; rejects when there is none or it refuses. */
export const connectHolder = async (directory: string, hello: Hello, listener: HolderListener): Promise<HolderLink> => {
  const socket = await opened(socketPath(directory))
  const reader = new FrameReader()
  const welcomed = Promise.withResolvers<Welcome>()
  socket.on("error", () => socket.destroy())
  socket.on("close", () => {
    welcomed.reject(new HolderUnreachable("the holder closed the connection"))
    listener.closed()
  })
  socket.on("data", (piece) => {
    try {
      for (const frame of reader.push(piece)) {
        if (frame.type === "welcome") welcomed.resolve(frame.value)
        else if (frame.type === "refused") welcomed.reject(new HolderUnreachable(frame.value.reason))
        else listener.frame(frame)
      }
    } catch {
      socket.destroy()
    }
  })
  socket.write(encodeFrame({ type: "hello", value: hello }))
  const welcome = await welcomed.promise
  return {
    welcome,
    send: (frame) => void socket.write(encodeFrame(frame)),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    behindBytes: () => socket.writableLength,
    close: () => socket.end()
  }
}

/** Source and build lie side by side under the same names. */
const processFile = (): string =>
  fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "./HolderProcess.ts" : "./HolderProcess.js", import.meta.url))

const reachableWithinMs = 20_000
const triedEveryMs = 20

/** Starts the holder of a directory; resolves when it can be reached. */
export const startHolder = async (
  directory: string,
  launch: LaunchFile,
  env: Readonly<Record<string, string | undefined>>
): Promise<void> => {
  writePrivate(launchPath(directory), `${JSON.stringify(launch)}\n`)
  const log = openSync(join(directory, "holder.log"), "a", 0o600)
  const child = spawn(process.execPath, [processFile(), directory], {
    detached: true,
    stdio: ["ignore", log, log],
    env,
    cwd: launch.workingDirectory
  })
  closeSync(log)
  let ended = false
  child.once("exit", () => {
    ended = true
  })
  child.once("error", () => {
    ended = true
  })
  child.unref()
  for (let waitedMs = 0; waitedMs < reachableWithinMs && !ended; waitedMs += triedEveryMs) {
    const socket = await opened(socketPath(directory)).catch(() => undefined)
    socket?.destroy()
    if (socket !== undefined) return
    await sleep(triedEveryMs)
  }
  throw new HolderUnreachable(`the program could not be started; ${join(directory, "holder.log")} says why`)
}
