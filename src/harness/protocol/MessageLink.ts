// A connection over which a program and ECHS send each other messages: JSON over a WebSocket, with the token that the program
// was given. Nothing is read faster than it is heard.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { WebSocket } from "ws"
import { harnessLimits } from "../HarnessLimits.ts"

export interface MessageLink {
  /** Ends when the connection does. */
  readonly messages: Stream.Stream<unknown>
  readonly send: (message: unknown) => void
}

const heldMax = 256

/** What came and was not heard yet; the socket waits while there is too much of it. */
const received = (socket: WebSocket): AsyncGenerator<unknown, void, void> => {
  const held: Array<string> = []
  let isOver = false
  let wake: () => void = () => undefined
  socket.on("message", (data) => {
    held.push(String(data))
    if (held.length >= heldMax) socket.pause()
    wake()
  })
  socket.on("close", () => {
    isOver = true
    wake()
  })
  return (async function* () {
    for (;;) {
      const text = held.shift()
      if (text !== undefined) {
        if (held.length === 0 && !isOver) socket.resume()
        yield parsed(text)
      } else if (isOver) return
      else
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    }
  })()
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const opened = (address: string, token: string) =>
  Effect.callback<WebSocket, Error>((resume) => {
    const socket = new WebSocket(address, {
      headers: { authorization: `Bearer ${token}` },
      maxPayload: harnessLimits.messageBytesMax,
      perMessageDeflate: false
    })
    socket.on("error", (error) => resume(Effect.fail(error)))
    socket.on("open", () => resume(Effect.succeed(socket)))
    return Effect.sync(() => socket.terminate())
  })

/** Connects for as long as the scope is open; fails where nobody answers, or does not take the token. */
export const connectWebSocket = (address: string, token: string): Effect.Effect<MessageLink, Error, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(opened(address, token), (socket) => Effect.sync(() => socket.terminate())),
    (socket): MessageLink => {
      const incoming = received(socket)
      return {
        messages: Stream.fromAsyncIterable(incoming, (error) => error).pipe(Stream.orDie),
        send: (message) => {
          if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
        }
      }
    }
  )
