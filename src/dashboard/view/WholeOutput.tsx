// All of a tool's output, piece by piece below what its rune has of it; and the images that came with it.
import { useMemo } from "preact/hooks"
import { BlobText } from "../data/BlobText.ts"
import { bytes } from "../state/Format.ts"
import { safeText } from "../state/Safe.ts"
import type { BlobName } from "../state/Transcript.ts"

const addressOfBlob = (sha256: string): string => `/v1/blobs/${sha256}`

export const WholeOutput = ({ blob, output }: { readonly blob: BlobName; readonly output: string }) => {
  const whole = useMemo(() => new BlobText(blob.sha256, blob.bytes), [blob.sha256])
  const isBegun = whole.text.value !== ""
  const left = whole.left.value ?? 0
  return (
    <div class="stack tight" data-whole-output>
      <pre class="code-block output" tabIndex={0} title="output">
        {safeText(isBegun ? whole.text.value : output)}
      </pre>
      {whole.failure.value === "" ? null : <p class="bad small">{whole.failure.value}</p>}
      <div class="actions">
        {left === 0 ? null : (
          <button type="button" disabled={whole.isLoading.value} onClick={() => void whole.more()}>
            {isBegun ? `Show more, ${bytes(left)} left` : `Show all ${bytes(blob.bytes)}`}
          </button>
        )}
        <a class="button" href={addressOfBlob(blob.sha256)} download>
          Download
        </a>
        {isBegun ? null : <span class="quiet small">This is its beginning and its end.</span>}
      </div>
    </div>
  )
}

export const Images = ({ blobs }: { readonly blobs: ReadonlyArray<BlobName> }) =>
  blobs.length === 0 ? null : (
    <div class="images">
      {blobs.map(({ bytes: size, sha256 }) => (
        <a key={sha256} href={addressOfBlob(sha256)} target="_blank" rel="noopener noreferrer">
          <img src={addressOfBlob(sha256)} alt={`attached, ${bytes(size)}`} loading="lazy" />
        </a>
      ))}
    </div>
  )
