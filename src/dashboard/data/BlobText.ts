// The whole output of a tool, which its rune only begins: read from the server piece by piece, as far as somebody wants.
import { signal } from "@preact/signals"
import { client, failureText } from "./Connection.ts"

const pieceBytes = 256 * 1024

export class BlobText {
  readonly text = signal("")
  readonly failure = signal("")
  readonly isLoading = signal(false)
  /** Bytes that are not read yet. */
  readonly left: ReturnType<typeof signal<number>>
  private readonly sha256: string
  private offset = 0
  // A character may be cut between two pieces.
  private readonly decoder = new TextDecoder()

  constructor(sha256: string, size: number) {
    this.sha256 = sha256
    this.left = signal(size)
  }

  async more(): Promise<void> {
    if (this.isLoading.value) return
    this.isLoading.value = true
    try {
      const range = { offset: this.offset, bytesMax: pieceBytes }
      const { bytes, size } = await client().download(this.sha256, range)
      this.offset += bytes.length
      const isLast = bytes.length === 0 || this.offset >= size
      this.text.value += this.decoder.decode(bytes, { stream: !isLast })
      this.left.value = isLast ? 0 : size - this.offset
      this.failure.value = ""
    } catch (error) {
      this.failure.value = failureText(error)
    } finally {
      this.isLoading.value = false
    }
  }
}
