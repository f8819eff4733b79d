// What a scenario file may say: a list of replies, each with a condition on the request and a list of actions to
// play. Which reply is played depends on the request alone, never on earlier calls, so that a conversation that is
// recovered after a crash gets the same answers again.
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { errorKinds, ScenarioInvalid } from "../ProviderErrors.ts"
import { limits } from "../ProviderLimits.ts"

const Natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Positive = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

/** All given fields must hold. Patterns are regular expressions, without regard to case. */
export const When = Schema.Struct({
  /** Role of the agent that asks. */
  role: Schema.optionalKey(Schema.String),
  agent: Schema.optionalKey(Schema.String),
  /** How many inputs the conversation has had: 1 for the first. */
  turn: Schema.optionalKey(Positive),
  /** Which model call of the turn this is: 1 for the first. */
  step: Schema.optionalKey(Positive),
  /** Which try of the call this is: 1 for the first. */
  attempt: Schema.optionalKey(Positive),
  /** Pattern in the last input. */
  input: Schema.optionalKey(Schema.String),
  /** Pattern in the instructions. */
  instructions: Schema.optionalKey(Schema.String),
  /** Tool whose result came last. */
  last_tool: Schema.optionalKey(Schema.String),
  /** Pattern in the last tool result. */
  last_output: Schema.optionalKey(Schema.String),
  /** Tools that must all be offered. */
  tools: Schema.optionalKey(Schema.Array(Schema.String))
})

const streamed = { chunk_chars: Schema.optionalKey(Positive), delay_ms: Schema.optionalKey(Natural) }

const UsageNumbers = Schema.Struct({
  input_tokens: Natural,
  cached_input_tokens: Schema.optionalKey(Natural),
  cache_write_tokens: Schema.optionalKey(Natural),
  output_tokens: Natural,
  reasoning_tokens: Schema.optionalKey(Natural)
})

export const Action = Schema.Union([
  Schema.Struct({ text: Schema.String, ...streamed }),
  Schema.Struct({ reasoning: Schema.String, ...streamed }),
  Schema.Struct({
    /** A name, or several of which the first that is offered is called. */
    tool: Schema.Union([Schema.String, Schema.NonEmptyArray(Schema.String)]),
    arguments: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
    /** Arguments as text, for those that are no JSON. */
    raw_arguments: Schema.optionalKey(Schema.String),
    call_id: Schema.optionalKey(Schema.String)
  }),
  /** Numbers to report instead of the computed ones. */
  Schema.Struct({ usage: UsageNumbers }),
  Schema.Struct({ wait_ms: Natural }),
  Schema.Struct({
    error: Schema.Struct({
      kind: Schema.Literals(errorKinds),
      message: Schema.optionalKey(Schema.String),
      retry_after_ms: Schema.optionalKey(Natural)
    })
  }),
  /** The stream ends here, without its terminal event. */
  Schema.Struct({ cut: Schema.Literal(true) }),
  /** Nothing more comes, and the stream does not end either. */
  Schema.Struct({ stall: Schema.Literal(true) })
])

export const Reply = Schema.Struct({
  when: Schema.optionalKey(When),
  play: Schema.Array(Action),
  stop: Schema.optionalKey(
    Schema.Literals(["end_turn", "tool_calls", "max_output_tokens", "context_window", "stop_sequence", "pause_turn"])
  )
})

export const Scenario = Schema.Struct({
  name: Schema.String,
  description: Schema.optionalKey(Schema.String),
  /** The first reply whose condition holds is played. */
  replies: Schema.NonEmptyArray(Reply)
})

export type When = typeof When.Type
export type Action = typeof Action.Type
export type Reply = typeof Reply.Type
export type Scenario = typeof Scenario.Type

const decode = Schema.decodeUnknownResult(Scenario, { onExcessProperty: "error" })

const patternFields = ["input", "instructions", "last_output"] as const

const badPattern = (scenario: Scenario): string | undefined => {
  for (const [index, reply] of scenario.replies.entries()) {
    for (const field of patternFields) {
      const pattern = reply.when?.[field]
      if (pattern === undefined) continue
      try {
        new RegExp(pattern, "i")
      } catch {
        return `replies[${index}].when.${field} is not a regular expression: ${pattern}`
      }
    }
  }
  return undefined
}

/** Checks a value against the schema; the failure names the place and the expectation. */
export const parseScenario = (name: string, value: unknown): Result.Result<Scenario, ScenarioInvalid> => {
  const decoded = decode(value)
  if (Result.isFailure(decoded))
    return Result.fail(new ScenarioInvalid({ scenario: name, reason: decoded.failure.message }))
  const reason = badPattern(decoded.success)
  return reason === undefined
    ? Result.succeed(decoded.success)
    : Result.fail(new ScenarioInvalid({ scenario: name, reason }))
}

export const parseScenarioText = (name: string, json: string): Result.Result<Scenario, ScenarioInvalid> => {
  if (json.length > limits.scenarioCharsMax) {
    const reason = `the file has ${json.length} characters; at most ${limits.scenarioCharsMax} are accepted`
    return Result.fail(new ScenarioInvalid({ scenario: name, reason }))
  }
  try {
    return parseScenario(name, JSON.parse(json))
  } catch (cause) {
    const reason = `not valid JSON: ${cause instanceof Error ? cause.message : String(cause)}`
    return Result.fail(new ScenarioInvalid({ scenario: name, reason }))
  }
}
