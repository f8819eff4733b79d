// Keeps what the server knows to be secret out of what is written down: wherever the whole value stands it is replaced.
// Values of fewer than eight characters are left alone, for they stand in ordinary text too.

export const secretCharsMin = 8
const replacement = "[secret]"

/** Text that comes in pieces: a value that is torn between two of them is found all the same. */
export interface SecretStream {
  readonly push: (chunk: string) => string
  /** What was held back because it could have become a secret. */
  readonly end: () => string
}

export interface SecretMask {
  readonly text: (text: string) => string
  readonly stream: () => SecretStream
  /** The same for bytes, whatever their encoding. */
  readonly bytes: (source: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>
}

/** Longest first: one may be part of another. */
const known = (values: Iterable<string | undefined>): ReadonlyArray<string> =>
  [...new Set(values)]
    .filter((value) => value !== undefined)
    .filter((value) => value.length >= secretCharsMin)
    .sort((left, right) => right.length - left.length)

const replaced = (text: string, secrets: ReadonlyArray<string>): string =>
  secrets.reduce((kept, secret) => (kept.includes(secret) ? kept.replaceAll(secret, replacement) : kept), text)

/** How many characters at the end could be the beginning of a secret. */
const heldBack = (text: string, secrets: ReadonlyArray<string>): number => {
  const longest = secrets[0]?.length ?? 0
  for (let length = Math.min(longest - 1, text.length); length > 0; length -= 1) {
    const end = text.slice(-length)
    if (secrets.some((secret) => secret.length > length && secret.startsWith(end))) return length
  }
  return 0
}

const streamOf = (secrets: ReadonlyArray<string>): SecretStream => {
  let held = ""
  return {
    push: (chunk) => {
      const text = replaced(`${held}${chunk}`, secrets)
      const keep = heldBack(text, secrets)
      held = text.slice(text.length - keep)
      return text.slice(0, text.length - keep)
    },
    end: () => {
      const rest = held
      held = ""
      return rest
    }
  }
}

export const makeSecretMask = (values: Iterable<string | undefined>): SecretMask => {
  const secrets = known(values)
  const asBytes = secrets.map((secret) => Buffer.from(secret, "utf8").toString("latin1"))
  return {
    text: (text) => replaced(text, secrets),
    stream: () => streamOf(secrets),
    bytes: async function* (source) {
      const stream = streamOf(asBytes)
      for await (const chunk of source) {
        const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("latin1")
        const shown = stream.push(text)
        if (shown !== "") yield Buffer.from(shown, "latin1")
      }
      const rest = stream.end()
      if (rest !== "") yield Buffer.from(rest, "latin1")
    }
  }
}

const secretNames = /(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$/i

/** Values of variables whose names say that they are secret. */
export const secretsIn = (variables: Readonly<Record<string, string | undefined>>): ReadonlyArray<string> =>
  Object.entries(variables).flatMap(([name, value]) => (value !== undefined && secretNames.test(name) ? [value] : []))
