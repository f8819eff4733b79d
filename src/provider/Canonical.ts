// The conversation as every provider adapter sees it: plain, serialisable data with the names used in
// runes. Adapters translate it to a wire format and back; nothing above them knows any wire format.

/** Text a person, a tool or a model wrote. */
export interface TextPart {
  readonly type: "text"
  readonly text: string
  /** Whether the model marked the text as progress or as its answer. Sent back as it came. */
  readonly phase?: "commentary" | "final_answer"
}

/** A call the model asked for. `arguments` is the text the model wrote: it may not even be JSON. */
export interface ToolCallPart {
  readonly type: "tool_call"
  readonly call_id: string
  readonly tool_name: string
  readonly arguments: string
}

/** Bytes that are kept elsewhere, under their hash. They are read when the request is sent, and not before. */
export interface BlobSource {
  readonly sha256: string
  readonly bytes: number
}

/** An image for the model to see: its bytes, or an address that the provider fetches. */
export interface ImagePart {
  readonly type: "image"
  readonly media_type: string
  readonly source: BlobSource | { readonly url: string }
  /** The bytes as base64, in a request that is about to be sent. */
  readonly data?: string
}

/** A document for the model to read; PDF is what providers take. */
export interface FilePart {
  readonly type: "file"
  readonly name: string
  readonly media_type: string
  readonly source: BlobSource
  readonly data?: string
}

export type AttachmentPart = ImagePart | FilePart

/** What came of a call. */
export interface ToolResultPart {
  readonly type: "tool_result"
  readonly call_id: string
  readonly output: string
  readonly attachments?: ReadonlyArray<AttachmentPart>
  readonly is_error?: boolean
}

/**
 * Provider data that only its own provider understands: signed thinking, encrypted reasoning. `json` is
 * kept exactly as it was made from the answer and is sent again only to the same `origin`, because such
 * data is worthless, or refused, anywhere else.
 */
export interface OpaquePart {
  readonly type: "opaque"
  /** Wire shape of `json`, for example `anthropic.content_block`. */
  readonly format: string
  /** Full model name `provider/name` that produced it. */
  readonly origin: string
  readonly json: string
}

/** Parts of an assistant message, in the order in which the model produced them. */
export type AssistantPart = TextPart | ToolCallPart | OpaquePart

export interface UserMessage {
  readonly role: "user"
  readonly content: ReadonlyArray<TextPart | AttachmentPart>
  /** Nobody's input, but what has changed where the agent works; it is sent like one. */
  readonly note?: true
}

export interface AssistantMessage {
  readonly role: "assistant"
  readonly content: ReadonlyArray<AssistantPart>
}

export interface ToolMessage {
  readonly role: "tool"
  readonly content: ReadonlyArray<ToolResultPart>
}

export type Message = UserMessage | AssistantMessage | ToolMessage

export type JsonObject = { readonly [key: string]: unknown }

export interface ToolDefinition {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments; its root is an object. */
  readonly parameters: JsonObject
}

export type Effort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max"

export interface ReasoningOptions {
  readonly effort?: Effort
  /** Thinking budget for models that take a number instead of an effort. */
  readonly budgetTokens?: number
}

/** Who asks. Adapters send none of it except a cache key; the scripted provider selects by it. */
export interface RequestMetadata {
  readonly conversationId?: string
  readonly agentId?: string
  readonly role?: string
  readonly turnId?: string
  /** 1 for the first try of this model call, 2 for its first retry, … */
  readonly attempt?: number
}

export interface ModelRequest {
  /** Unique per model call; the id of the `turn.model_requested` rune that announced it. */
  readonly requestId: string
  /** Model name without the provider prefix. */
  readonly model: string
  readonly instructions?: string
  readonly messages: ReadonlyArray<Message>
  readonly tools?: ReadonlyArray<ToolDefinition>
  readonly reasoning?: ReasoningOptions
  readonly maxOutputTokens?: number
  readonly metadata?: RequestMetadata
}

export const text = (value: string): TextPart => ({ type: "text", text: value })

export const user = (value: string): UserMessage => ({ role: "user", content: [text(value)] })

export const assistant = (content: ReadonlyArray<AssistantPart>): AssistantMessage => ({ role: "assistant", content })

export const toolResults = (content: ReadonlyArray<ToolResultPart>): ToolMessage => ({ role: "tool", content })
