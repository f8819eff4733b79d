// A fetch that reports when bytes arrive and whether the body came to its end. The SDKs swallow keep-alives and
// hide how a stream ended; both are needed to tell a slow answer from a dead one and a cut one from a broken one.

export interface Tap {
  readonly fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>
  readonly answered: () => boolean
  readonly bodyEnded: () => boolean
  /** What the response said it is; empty before it arrived. */
  readonly contentType: () => string
}

type ByteReader = ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>

/** The part of a body the SDKs read through. A whole stream in between would cost more than the parsing itself. */
const tapped = (body: ReadableStream<Uint8Array<ArrayBuffer>>, onChunk: () => void, onEnd: () => void) => ({
  getReader: () => {
    const reader: ByteReader = body.getReader()
    return {
      read: async () => {
        const chunk = await reader.read()
        if (chunk.done) onEnd()
        else onChunk()
        return chunk
      },
      cancel: (reason?: unknown) => reader.cancel(reason),
      releaseLock: () => reader.releaseLock(),
      get closed() {
        return reader.closed
      }
    }
  },
  cancel: (reason?: unknown) => body.cancel(reason)
})

export const makeTap = (onActivity: (() => void) | undefined): Tap => {
  let answered = false
  let bodyEnded = false
  let contentType = ""
  const onChunk = onActivity ?? (() => undefined)
  return {
    fetch: async (input, init) => {
      const response = await fetch(input, init)
      answered = true
      contentType = response.headers.get("content-type") ?? ""
      onChunk()
      if (response.ok && response.body !== null) {
        const value = tapped(response.body, onChunk, () => {
          bodyEnded = true
        })
        Object.defineProperty(response, "body", { value })
      }
      return response
    },
    answered: () => answered,
    bodyEnded: () => bodyEnded,
    contentType: () => contentType
  }
}
