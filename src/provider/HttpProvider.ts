// What the three HTTP adapters are given. Nothing here is read from the environment: keys, addresses and headers
// come in as values, and the SDKs are told not to look for their own.
import type * as Redacted from "effect/Redacted"
import type { ReadBlob } from "./Attachments.ts"
import type { ModelInfo } from "./ModelInfo.ts"

export interface HttpProviderConfig {
  readonly name: string
  readonly baseUrl?: string
  /** Absent for local servers that want none. */
  readonly apiKey?: Redacted.Redacted<string>
  readonly headers?: { readonly [name: string]: string }
  /** The bytes of an image or a document; rejects when they are not there. Without it none is sent. */
  readonly readBlob?: ReadBlob
  readonly modelInfo: (model: string) => ModelInfo & { readonly known: boolean }
}

/** The SDKs' own limit, far above ours: ours decides. */
export const sdkTimeoutMs = 60 * 60 * 1000
