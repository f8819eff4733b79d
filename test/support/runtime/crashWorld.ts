// What the process that is killed and the one that takes over have in common: the scenario, the tools, the hooks, and
// files on which every run of something that must not run twice leaves a mark.

import { appendFileSync, existsSync, readFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import type { HookPort } from "#src/hook/HookPort.ts"
import type { FunctionTool } from "../tool/FunctionTools.ts"
import { say, scenarios, step, use } from "./scenarios.ts"
import { effectTool, tool } from "./tools.ts"

export const crashLimits = { journalFileBytes: 8 * 1024 * 1024, journalFilesMax: 4 }

export const finalText = "All of it is done."

export const crashScenarios = scenarios({
  crash: [
    step(1, say("I will look and write. ", { chunk_chars: 8 }), use("look", { at: "a" }), use("write", { to: "b" })),
    step(2, say(finalText, { chunk_chars: 9 }))
  ]
})

/** Leaves a mark that survives whatever happens next. */
const mark = (directory: string, what: string): void => appendFileSync(`${directory}/${what}`, "x")

export const marks = (directory: string, what: string): number =>
  existsSync(`${directory}/${what}`) ? readFileSync(`${directory}/${what}`).length : 0

export const crashTools = (
  directory: string,
  options: { readonly asksFirst: boolean }
): ReadonlyArray<FunctionTool> => [
  tool("look", async (_input, { progress }) => {
    progress("stdout", "looking\n")
    mark(directory, "looked")
    return "seen"
  }),
  effectTool(
    "write",
    async (_input, { progress }) => {
      progress("stdout", "writing\n")
      mark(directory, "written")
      return "written"
    },
    options.asksFirst ? { approval: "ask" } : {}
  )
]

export const crashHooks = (directory: string): HookPort => ({
  choose: () => [
    { hook_name: "lint", failure_policy: { type: "warn_continue" }, timeout_ms: 5000, effect_class: "pure" },
    { hook_name: "publish", failure_policy: { type: "warn_continue" }, timeout_ms: 5000, effect_class: "effect" }
  ],
  run: (_state, hook) =>
    Effect.sync(() => {
      mark(directory, `hook-${hook.hook_name}`)
      return { status: "succeeded" }
    })
})
