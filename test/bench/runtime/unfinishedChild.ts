// Starts turns that do not end and says so when all of them are durable; then it is killed. Arguments: directory, turns.
import { limits } from "#src/provider/ProviderLimits.ts"
import { BenchRuntime } from "./openRuntime.ts"
import { unfinishedScenarios } from "./recovering.ts"

const [, , directory = "", count = ""] = process.argv
const turns = Number(count)
let started = 0
let speaking = 0
const runtime = await BenchRuntime.open(directory, {
  scenarios: unfinishedScenarios.stalled,
  onRunes: (runes) => {
    for (const { kind } of runes) {
      if (kind === "turn.started") started += 1
      if (kind === "turn.assistant_delta") speaking += 1
      // The others wait for their turn with the provider, which is unfinished as well.
      if (started === turns && speaking === Math.min(turns, limits.concurrentCalls)) process.stdout.write("ready\n")
    }
  }
})
const ids = await runtime.createMany(turns, "scripted/work")
for (const id of ids) runtime.turn(id, "Say what is wrong.").catch(() => process.exit(1))
