/** Bytes that runes name by their hash, read in ranges beside the WebSocket. */
import type { WireError } from "../wire/Codes.ts"
import { NoServer, RequestFailed } from "./ClientErrors.ts"
import { type Endpoint, httpUrl } from "./Socket.ts"

export interface DownloadRange {
  readonly offset: number
  readonly bytesMax: number
}

export interface Downloaded {
  readonly bytes: Uint8Array
  /** Of the whole blob. */
  readonly size: number
}

/** Some bytes from the offset on; fails with `not_found` where there is no such blob. */
export const download = async (
  { token, url }: Endpoint,
  sha256: string,
  { bytesMax, offset }: DownloadRange
): Promise<Downloaded> => {
  const headers = {
    range: `bytes=${offset}-${offset + bytesMax - 1}`,
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` })
  }
  const response = await fetch(httpUrl(url, `/v1/blobs/${sha256}`), { headers }).catch((cause: unknown) => {
    throw new NoServer(url, cause instanceof Error ? cause.message : String(cause))
  })
  if (response.status === 416) return { bytes: new Uint8Array(0), size: offset }
  if (!response.ok) {
    const { error } = (await response.json()) as { readonly error: WireError }
    throw new RequestFailed("blob.read", error)
  }
  const bytes = new Uint8Array(await response.arrayBuffer())
  const [, size] = /\/(\d+)$/.exec(response.headers.get("content-range") ?? "") ?? []
  return { bytes, size: size === undefined ? bytes.length : Number(size) }
}
