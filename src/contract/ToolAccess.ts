// What tools and the policy both know of a call: what it would touch, where its tool comes from, and the mark of a tool
// that is not described yet.

/** What a call would touch, as far as its arguments tell. Paths are as the model wrote them. */
export interface Access {
  readonly reads?: ReadonlyArray<string>
  readonly writes?: ReadonlyArray<string>
  /** It also reads what lies below its paths. */
  readonly below?: boolean
  /** A shell command line, to be parsed and never matched as text. */
  readonly command?: string
  /** The command runs in a shell that earlier commands have changed: its words may mean something else there. */
  readonly stateful?: boolean
  /** An address it would fetch. */
  readonly url?: string
  /** It wants the network in its sandbox. */
  readonly network?: boolean
  /** It only looks at, or ends, what an earlier call was allowed to start: no effect of its own to ask about. */
  readonly control?: boolean
}

export type Provenance = "builtin" | "mcp" | "remote" | "custom"

/** Definition of a tool whose server has not described its tools yet: it matches no grant. */
export const unknownDefinition = "unknown"
