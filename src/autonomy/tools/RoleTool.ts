// What the tools of this folder have in common: they talk to ECHS itself and to nothing else, so no policy stands in
// their way, and what is wrong with a call is told to the model in words it can act on.
import * as Effect from "effect/Effect"
import { errorInfo } from "../../machine/ErrorTable.ts"
import type { ErrorInfo } from "../../rune/kinds/shared.ts"
import { promisedOutcome } from "../../tool/PromiseWork.ts"
import type { Input, Tool } from "../../tool/Tool.ts"
import type { SignalContext, ToolOutcome } from "../../tool/ToolPort.ts"

export const done = (output: string): ToolOutcome => ({ status: "success", output })

export const wrong = (message: string, code: ErrorInfo["code"] = "invalid_arguments"): ToolOutcome => ({
  status: "error",
  error: { ...errorInfo("invalid_arguments", message), code }
})

export const faulty = (what: string, problems: ReadonlyArray<string>): ToolOutcome =>
  wrong(
    `the ${what} was not accepted:\n${problems.map((one) => `- ${one}`).join("\n")}\nMend it and call the tool again.`
  )

interface Spec {
  readonly name: string
  readonly description: string
  readonly parameters: Tool["parameters"]
  readonly effect_class: Tool["effect_class"]
  readonly timeout_ms?: number
  readonly run: (input: Input, context: SignalContext) => Promise<ToolOutcome>
}

export const ownTool = (spec: Spec): Tool => ({
  ...spec,
  mutating: false,
  provenance: "builtin",
  approval: "never",
  access: () => ({}),
  run: (input, context) => promisedOutcome(context, (signaled) => spec.run(input, signaled)),
  preview: (input) => Effect.succeed({ title: spec.name, detail: JSON.stringify(input, null, 2) })
})
