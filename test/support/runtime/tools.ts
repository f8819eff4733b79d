// Tools for tests of the runtime: one that only reads, one whose every run counts, one that asks first, one that a
// test opens and closes like a gate.

import type { SignalContext, ToolOutcome } from "#src/tool/ToolPort.ts"
import type { FunctionTool } from "../tool/FunctionTools.ts"

export const parameters = { type: "object", properties: {}, additionalProperties: true } as const

type Run = FunctionTool["run"]

export const tool = (name: string, run: Run, more: Partial<FunctionTool> = {}): FunctionTool => ({
  name,
  description: `${name} for tests`,
  parameters,
  effect_class: "pure",
  mutating: false,
  run,
  ...more
})

export const effectTool = (name: string, run: Run, more: Partial<FunctionTool> = {}): FunctionTool =>
  tool(name, run, { effect_class: "effect", mutating: true, ...more })

/** A run that waits until the test says how it ends; honors its signal only when told to. */
export class Gate {
  readonly started: Promise<SignalContext>
  runs = 0
  aborted = false
  private begin: (context: SignalContext) => void = () => undefined
  private ended: ((outcome: ToolOutcome | string) => void) | undefined
  private failed: ((error: Error) => void) | undefined
  private readonly honorsSignal: boolean

  constructor(options: { readonly honorsSignal: boolean } = { honorsSignal: true }) {
    this.honorsSignal = options.honorsSignal
    this.started = new Promise((resolve) => {
      this.begin = resolve
    })
  }

  readonly run: Run = (_input, context) => {
    this.runs += 1
    this.begin(context)
    context.signal.addEventListener("abort", () => {
      this.aborted = true
      if (this.honorsSignal) this.ended?.({ status: "cancelled", output: "stopped half-way" })
    })
    return new Promise((resolve, reject) => {
      this.ended = resolve
      this.failed = reject
    })
  }

  end(outcome: ToolOutcome | string): void {
    this.ended?.(outcome)
  }

  fail(error: Error): void {
    this.failed?.(error)
  }
}
