// Transcripts in snapshots. A transcript is the part of a conversation's state that grows without bound, and looking at
// a conversation does not need it: a long one is written compressed, and unpacked by whoever first reads it. One that
// nobody read since it was loaded is written again as it is.
import { promisify } from "node:util"
import { constants, zstdCompress, zstdDecompressSync } from "node:zlib"
import type { AgentState, ConversationState } from "../machine/State.ts"
import { limits } from "./ConversationLimits.ts"

type Transcript = AgentState["transcript"]

/** A transcript as it is written: pieces of it, each compressed JSON in base64, so that no more than one is unpacked at once. */
interface Packed {
  readonly packed: ReadonlyArray<string>
}

/** Speed before size. */
const LEVEL = 1
const compress = promisify(zstdCompress)

/** Agents whose transcript nobody has read yet, with what it is packed in. */
const unread = new WeakMap<AgentState, ReadonlyArray<string>>()

export const isUnread = (agent: AgentState): boolean => unread.has(agent)

const pack = async (texts: ReadonlyArray<string>): Promise<Packed> => {
  const packed: Array<string> = []
  for (const text of texts) {
    const bytes = await compress(text, { params: { [constants.ZSTD_c_compressionLevel]: LEVEL } })
    packed.push(bytes.toString("base64"))
  }
  return { packed }
}

const unpack = (packed: ReadonlyArray<string>): Transcript =>
  packed.flatMap((piece) => JSON.parse(zstdDecompressSync(Buffer.from(piece, "base64")).toString("utf8")) as Transcript)

/** The JSON of a transcript in pieces of about the size that is packed. */
const textsOf = (transcript: Transcript): ReadonlyArray<string> => {
  const texts: Array<string> = []
  let items: Array<string> = []
  let chars = 0
  const close = (): void => {
    texts.push(`[${items.join(",")}]`)
    items = []
    chars = 0
  }
  for (const item of transcript) {
    const text = JSON.stringify(item)
    items.push(text)
    chars += text.length
    if (chars >= limits.packCharsMin) close()
  }
  if (items.length > 0) close()
  return texts
}

/** Everything of an agent but its transcript, which must not be read for this. */
const withoutTranscript = (agent: AgentState): object =>
  Object.fromEntries(Object.keys(agent).flatMap((key) => (key === "transcript" ? [] : [[key, agent[key as never]]])))

/** The state as a snapshot holds it. */
export interface PackedState {
  readonly value: object
  /** How much text it was made of. */
  readonly chars: number
}

/** What is written of a transcript: its JSON, or what it is packed in already. */
type Source = { readonly texts: ReadonlyArray<string> } | Packed

const sourceOf = (agent: AgentState): Source => {
  const packed = unread.get(agent)
  return packed === undefined ? { texts: textsOf(agent.transcript) } : { packed }
}

const lengthOf = (source: Source): number =>
  ("texts" in source ? source.texts : source.packed).reduce((sum, { length }) => sum + length, 0)

/** Reads the state before it returns; later changes are not its business. */
export const packState = (state: ConversationState): Promise<PackedState> => {
  const core = JSON.stringify({ ...state, agents: state.agents.map(withoutTranscript) })
  return assemble(core, state.agents.map(sourceOf))
}

const assemble = async (core: string, sources: ReadonlyArray<Source>): Promise<PackedState> => {
  const state = JSON.parse(core) as { readonly agents: ReadonlyArray<object> }
  const agents: Array<object> = []
  for (const [at, source] of sources.entries()) agents.push({ ...state.agents[at], transcript: await written(source) })
  return { value: { ...state, agents }, chars: sources.reduce((sum, source) => sum + lengthOf(source), core.length) }
}

const written = async (source: Source): Promise<Packed | Transcript> => {
  if ("packed" in source) return source
  const [first, ...more] = source.texts
  const isShort = more.length === 0 && (first?.length ?? 0) < limits.packCharsMin
  return isShort ? (JSON.parse(first ?? "[]") as Transcript) : pack(source.texts)
}

/** Makes a state of what a snapshot holds, in place. */
export const unpackState = (value: ConversationState): ConversationState => {
  for (const agent of value.agents) {
    const transcript = agent.transcript as Transcript | Packed
    if ("packed" in transcript) unpackWhenRead(agent, transcript.packed)
  }
  return value
}

const unpackWhenRead = (agent: AgentState, packed: ReadonlyArray<string>): void => {
  const become = (transcript: Transcript): Transcript => {
    unread.delete(agent)
    Object.defineProperty(agent, "transcript", {
      value: transcript,
      writable: true,
      enumerable: true,
      configurable: true
    })
    return transcript
  }
  unread.set(agent, packed)
  Object.defineProperty(agent, "transcript", {
    get: () => become(unpack(packed)),
    set: become,
    enumerable: true,
    configurable: true
  })
}
