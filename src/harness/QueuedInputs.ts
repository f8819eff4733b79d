// Texts that wait until an agent can take them, on disk beside it: a server that dies before they are handed over leaves them to
// the next one. A text is taken off when it was handed over, so one that is handed over while the server dies may come twice.
import { existsSync, readFileSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { writePrivate } from "./holder/HolderFiles.ts"

const stored = (path: string): Array<string> => {
  try {
    const value: unknown = JSON.parse(readFileSync(path, "utf8"))
    return Array.isArray(value) ? value.filter((one) => typeof one === "string") : []
  } catch {
    return []
  }
}

export class QueuedInputs {
  private readonly path: string
  private readonly texts: Array<string>

  constructor(directory: string) {
    this.path = join(directory, "inputs.json")
    this.texts = stored(this.path)
  }

  get size(): number {
    return this.texts.length
  }

  get first(): string | undefined {
    return this.texts[0]
  }

  add(text: string): void {
    this.texts.push(text)
    this.write()
  }

  takeFirst(): void {
    this.texts.shift()
    this.write()
  }

  private write(): void {
    // The directory goes with its agent, and nobody is left to take them.
    if (!existsSync(dirname(this.path))) return
    if (this.texts.length === 0) rmSync(this.path, { force: true })
    else writePrivate(this.path, JSON.stringify(this.texts))
  }
}
