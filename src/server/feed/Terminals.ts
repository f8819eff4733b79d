// Terminals of outside agents that one connection looks at. Their output is pushed as it comes; a socket that takes nothing
// holds the terminal back, and is sent away when it stays like that.
import * as Effect from "effect/Effect"
import type { AttachedTerminal, OutsideAgents } from "../../contract/OutsideAgents.ts"
import type { AnswerOf, FieldsOf } from "../../wire/Operations.ts"
import { BadRequest, InvalidState, NotFound } from "../operations/OperationErrors.ts"
import { pushedFrame } from "../socket/PushedFrame.ts"
import { hasRoom, type SocketSink, waitForRoom } from "../socket/SocketSink.ts"

export interface TerminalsOptions {
  readonly outsideAgents: OutsideAgents | undefined
  readonly sink: SocketSink
  readonly newName: () => string
  /** The terminal is over, and so is its subscription. */
  readonly onEnded: (sub: string) => void
}

type Empty = AnswerOf<"terminal.input">

const base64 = /^[A-Za-z0-9+/]*={0,2}$/

export class Terminals {
  private readonly options: TerminalsOptions
  private readonly open = new Map<string, AttachedTerminal>()
  /** Attached, and the answer that says so is not sent yet. */
  private readonly unanswered = new Set<string>()

  constructor(options: TerminalsOptions) {
    this.options = options
  }

  async attach(fields: FieldsOf<"terminal.attach">): Promise<AnswerOf<"terminal.attach">> {
    const { newName, onEnded, outsideAgents, sink } = this.options
    if (outsideAgents === undefined) throw new InvalidState("an outside agent is not available on this server")
    const { columns, conversation_id: id, rows, watch: isWatching = false } = fields
    const sub = newName()
    const attached = await Effect.runPromise(
      outsideAgents.terminal(
        id,
        { columns, rows, isWatching },
        {
          output: (bytes) => this.push(sub, bytes),
          ended: (ended) => {
            if (this.open.delete(sub) && sink.isOpen()) sink.write(pushedFrame({ sub, terminal: { ended } }))
            onEnded(sub)
          }
        }
      )
    )
    this.open.set(sub, attached)
    this.unanswered.add(sub)
    return { sub, role: attached.role, columns: attached.columns, rows: attached.rows }
  }

  /** The client knows the name of the subscription: from here on it is told. */
  answered(sub: unknown): void {
    if (typeof sub === "string" && this.unanswered.delete(sub)) this.open.get(sub)?.resume()
  }

  input({ data, sub }: FieldsOf<"terminal.input">): Empty {
    if (!base64.test(data)) throw new BadRequest("data is not base64")
    this.typist(sub).input(Buffer.from(data, "base64"))
    return {}
  }

  resize({ sub, ...size }: FieldsOf<"terminal.resize">): Empty {
    this.typist(sub).resize(size)
    return {}
  }

  leave(sub: string): void {
    const attached = this.open.get(sub)
    this.open.delete(sub)
    this.unanswered.delete(sub)
    attached?.leave()
  }

  private typist(sub: string): AttachedTerminal {
    const attached = this.open.get(sub)
    if (attached === undefined) throw new NotFound(`there is no terminal ${sub.slice(0, 80)}`)
    if (attached.role !== "typist") throw new InvalidState("somebody else types there; this one only watches")
    return attached
  }

  private push(sub: string, bytes: Uint8Array): void {
    const { sink } = this.options
    const attached = this.open.get(sub)
    if (attached === undefined || !sink.isOpen()) return
    const output = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64")
    sink.write(pushedFrame({ sub, terminal: { output } }))
    if (hasRoom(sink)) return
    attached.pause()
    void waitForRoom(sink).then((hasComeBack) => {
      if (hasComeBack && this.open.get(sub) === attached) attached.resume()
    })
  }
}
