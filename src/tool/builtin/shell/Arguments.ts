// What a call of `bash` asks for, told apart by which arguments it has. Combinations that mean nothing are refused in
// words, not guessed at.
import * as Schema from "effect/Schema"
import { optional } from "../ToolSchema.ts"
import { shellLimits } from "./Limits.ts"

export const bashInput = Schema.Struct({
  command: optional(Schema.String.check(Schema.isMinLength(1)).annotate({ description: "the command line" })),
  timeout_ms: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: shellLimits.commandMsMax })).annotate({
      description: `how long it may take (default ${shellLimits.commandMs}); in a session: how long to wait for it (default ${shellLimits.waitMs})`
    })
  ),
  network: optional(
    Schema.Boolean.annotate({
      description:
        "it needs the network; a person may have to allow that. A session has it or not from its start: say the same at every command and input"
    })
  ),
  session: optional(
    Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(shellLimits.nameCharsMax)).annotate({
      description: "run it in the shell session of this name, which keeps directory, variables and background processes"
    })
  ),
  input: optional(Schema.String.annotate({ description: "text for the standard input of what runs in the session" })),
  close: optional(Schema.Boolean.annotate({ description: "end the session and all that runs in it" }))
})
export type BashInput = typeof bashInput.Type

interface Timed {
  readonly timeoutMs: number | undefined
}

export type Wish =
  | ({ readonly _tag: "Run"; readonly command: string; readonly network: boolean } & Timed)
  | ({ readonly _tag: "RunIn"; readonly session: string; readonly command: string; readonly network: boolean } & Timed)
  | ({ readonly _tag: "Type"; readonly session: string; readonly input: string; readonly network: boolean } & Timed)
  | ({ readonly _tag: "Look"; readonly session: string } & Timed)
  | { readonly _tag: "Close"; readonly session: string }
  | { readonly _tag: "List" }
  | { readonly _tag: "Wrong"; readonly problem: string }

const wrong = (problem: string): Wish => ({ _tag: "Wrong", problem })

const textProblem = (name: string, value: string | undefined, charsMax: number): string | undefined => {
  if (value?.includes("\0")) return `${name} must not contain a NUL character`
  return value !== undefined && value.length > charsMax ? `${name} has at most ${charsMax} characters` : undefined
}

const numberProblem = (value: number | undefined): string | undefined =>
  value === undefined || (Number.isInteger(value) && value >= 1 && value <= shellLimits.commandMsMax)
    ? undefined
    : `timeout_ms is a whole number from 1 to ${shellLimits.commandMsMax}`

const problemWith = ({ command, input, session, timeout_ms }: BashInput): string | undefined =>
  textProblem("command", command, shellLimits.commandCharsMax) ??
  textProblem("input", input, shellLimits.inputCharsMax) ??
  textProblem("session", session, shellLimits.nameCharsMax) ??
  numberProblem(timeout_ms) ??
  (session === "" ? "session must have a name" : undefined) ??
  (command?.trim() === "" ? "command must not be empty" : undefined)

/** What the arguments ask for. */
export const wishOf = (given: BashInput): Wish => {
  const problem = problemWith(given)
  if (problem !== undefined) return wrong(problem)
  const { close, command, input, network, session, timeout_ms } = given
  const timed = { timeoutMs: timeout_ms }
  if ([command, input, close === true ? "close" : undefined].filter((one) => one !== undefined).length > 1)
    return wrong("give one of command, input and close")
  if (session === undefined) {
    if (input !== undefined || close === true) return wrong("input and close need the name of a session")
    return command === undefined ? { _tag: "List" } : { _tag: "Run", command, network: network === true, ...timed }
  }
  if (command !== undefined) return { _tag: "RunIn", session, command, network: network === true, ...timed }
  if (input !== undefined) return { _tag: "Type", session, input, network: network === true, ...timed }
  return close === true ? { _tag: "Close", session } : { _tag: "Look", session, ...timed }
}
