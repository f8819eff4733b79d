// The digest of a segment's bytes: SHA-256 over the previous seal's digest and the SHA-256 of each MiB in turn.
// Hashing by the MiB lets every piece go through the thread pool, so sealing a large segment never holds
// up a commit.
import { createHash, webcrypto } from "node:crypto"
import type { DiskFile } from "../disk/Disk.ts"

const PIECE_BYTES = 1024 * 1024
/** Less than this is hashed sooner than a thread is reached. */
const POOL_BYTES_MIN = 64 * 1024

/** Hex digest over `[0, endOffset)` of the file, chained to the digest of the segment before (empty for the first). */
export const segmentDigest = async (file: DiskFile, endOffset: number, previousSha256: string): Promise<string> => {
  const whole = createHash("sha256").update(Buffer.from(previousSha256, "hex"))
  const piece = Buffer.allocUnsafeSlow(Math.min(PIECE_BYTES, endOffset))
  for (let offset = 0; offset < endOffset; offset += PIECE_BYTES) {
    const read = await file.read(piece, 0, Math.min(PIECE_BYTES, endOffset - offset), offset)
    whole.update(await digest(piece.subarray(0, read)))
  }
  return whole.digest("hex")
}

const digest = async (bytes: Buffer<ArrayBuffer>): Promise<Uint8Array> =>
  bytes.length < POOL_BYTES_MIN
    ? createHash("sha256").update(bytes).digest()
    : new Uint8Array(await webcrypto.subtle.digest("SHA-256", bytes))
