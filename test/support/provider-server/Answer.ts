// An answer as a test describes it, independent of the wire format it is then written in.

export interface AnswerCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

export interface Answer {
  readonly model: string
  readonly reasoning?: string
  /** Signature (Messages) or encrypted content (Responses) of the reasoning. */
  readonly seal?: string
  readonly text?: string
  readonly calls?: ReadonlyArray<AnswerCall>
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly stop: "end" | "calls" | "length"
}

export const plainAnswer: Answer = {
  model: "test-model",
  text: "Grüße aus dem Süden: 日本語, 👩‍👩‍👧 and some plain words.",
  inputTokens: 120,
  cachedTokens: 20,
  outputTokens: 34,
  reasoningTokens: 0,
  stop: "end"
}

export const toolAnswer: Answer = {
  model: "test-model",
  reasoning: "The user wants the file. I should read it first – then run the tests…",
  seal: "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/=",
  text: "I will read the file and run the tests.",
  calls: [
    { id: "call_a1B2", name: "read_file", arguments: '{"path":"src/größe.ts"}' },
    { id: "call_c3D4", name: "bash", arguments: '{"command":"npm test -- --filter \\"日本\\"","timeout":30}' }
  ],
  inputTokens: 900,
  cachedTokens: 512,
  outputTokens: 210,
  reasoningTokens: 64,
  stop: "calls"
}

/** Pieces the way models stream them: a few characters, sometimes one; large texts in large pieces. */
export const fragments = (text: string): ReadonlyArray<string> => {
  if (text.length > 50_000) return text.match(/[\s\S]{1,65536}/g) ?? []
  const characters = [...text]
  const out: Array<string> = []
  const sizes = [3, 1, 5, 2, 7]
  for (let at = 0, turn = 0; at < characters.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1
    out.push(characters.slice(at, at + size).join(""))
    at += size
  }
  return out
}

/** Characters outside ASCII as `\u` escapes, which some servers send and some do not. */
export const escaped = (json: string): string =>
  json.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

export const sse = (event: string | undefined, data: unknown): string =>
  `${event === undefined ? "" : `event: ${event}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`
