// Files that a person names to be sent along with a message, read whole and never more than a server takes.
import { open } from "node:fs/promises"

/** Larger files are refused by every server; reading them would only take memory. */
const bytesMax = 20 * 1024 * 1024

export const readAttachedFile = async (path: string): Promise<Uint8Array> => {
  const file = await open(path, "r")
  try {
    const facts = await file.stat()
    if (!facts.isFile()) throw new Error(`${path} is not a file`)
    if (facts.size > bytesMax) throw new Error(`${path} is too large (${facts.size} bytes; limit ${bytesMax})`)
    return await file.readFile()
  } finally {
    await file.close()
  }
}
