// Short ways to write what the scripted provider says.

export type Play = { readonly [action: string]: unknown }

export interface ReplySpec {
  readonly when?: { readonly [field: string]: unknown }
  readonly play: ReadonlyArray<Play>
  readonly stop?: string
}

export const say = (text: string, more: Play = {}): Play => ({ text, ...more })
export const think = (reasoning: string): Play => ({ reasoning })
export const use = (tool: string, args: object = {}, id?: string): Play => ({
  tool,
  arguments: args,
  ...(id === undefined ? {} : { call_id: id })
})
export const useRaw = (tool: string, text: string, id?: string): Play => ({
  tool,
  raw_arguments: text,
  ...(id === undefined ? {} : { call_id: id })
})
export const fail = (kind: string, more: Play = {}): Play => ({ error: { kind, ...more } })
export const cut: Play = { cut: true }
export const stall: Play = { stall: true }

/** A reply to the n-th model call of a turn. */
export const step = (number: number, ...play: ReadonlyArray<Play>): ReplySpec => ({ when: { step: number }, play })
export const attempt = (number: number, ...play: ReadonlyArray<Play>): ReplySpec => ({
  when: { attempt: number },
  play
})
export const always = (...play: ReadonlyArray<Play>): ReplySpec => ({ play })

/** Scenarios by name, each a list of replies. */
export const scenarios = (named: { readonly [name: string]: ReadonlyArray<ReplySpec> }) =>
  Object.fromEntries(Object.entries(named).map(([name, replies]) => [name, { name, replies }]))
