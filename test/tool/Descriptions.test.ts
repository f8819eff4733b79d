// What models and policies see of the built-in tools stays byte for byte as recorded: the prompt prefix, request bodies
// and permissions bound to a definition depend on it. A wanted change: record it with ECHS_RECORD=1.
import { readFileSync, writeFileSync } from "node:fs"
import { expect, test } from "vitest"
import { toolsOfAgents } from "../support/tool/toolsOfAgents.ts"

const golden = new URL("./descriptions.golden.jsonl", import.meta.url)

/** One tool a line, keys in the order in which they are sent. */
const recorded = (): string =>
  toolsOfAgents()
    .map(({ approval, description, effect_class, mutating, name, parameters, provenance, sandboxed, timeout_ms }) =>
      JSON.stringify({
        name,
        description,
        parameters,
        effect_class,
        mutating,
        timeout_ms,
        provenance,
        approval,
        sandboxed
      })
    )
    .map((line) => `${line}\n`)
    .join("")

test("the descriptions of the built-in tools are byte for byte as recorded", () => {
  if (process.env["ECHS_RECORD"] === "1") writeFileSync(golden, recorded())
  expect(recorded()).toBe(readFileSync(golden, "utf8"))
})
