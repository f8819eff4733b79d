// The fake provider in a process of its own, so that its work is nobody's measured time. Says its address.
import { setTimeout as sleep } from "node:timers/promises"
import { formats } from "../../support/provider-server/Formats.ts"
import { type Exchange, startProviderServer } from "../../support/provider-server/Server.ts"
import { answerOf, shapeOf } from "./streamShape.ts"

const server = await startProviderServer()
const exchanges = new Map<string, Exchange>()

server.respond(({ body, format }) => {
  const { model } = body as { readonly model: string }
  const known = exchanges.get(`${format} ${model}`)
  if (known !== undefined) return known
  const shape = shapeOf(model)
  const bytes = Buffer.from(formats.find(({ name }) => name === format)!.stream(answerOf(shape)))
  const exchange: Exchange = {
    body: bytes,
    // One event in each write, give or take the first and the last ones.
    pieceBytes: Math.ceil(bytes.length / shape.deltas),
    ...(shape.paceMs === 0 ? {} : { between: () => sleep(shape.paceMs) })
  }
  exchanges.set(`${format} ${model}`, exchange)
  return exchange
})

process.stdout.write(`${server.url}\n`)
