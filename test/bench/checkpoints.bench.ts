// What a checkpoint costs a batch of tool calls in a repository of 10,000 files: three files changed by the batch before and
// taken up while the model thought, and the same with nothing taken up ahead. BENCH_ROUNDS shortens or lengthens it.
import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { checkpointPlace, makeCheckpoints } from "../../src/tool/checkpoint/Checkpoints.ts"
import { makeGround } from "../support/sandbox.ts"
import type { Bench } from "./Bench.ts"
import { median, watchOthers } from "./runelog/sampling.ts"
import { positive } from "./runelog/settings.ts"

const directories = 100
const filesEach = 100
const targetMs = 30

const layOut = (workspace: string): void => {
  for (let at = 0; at < directories; at++) {
    mkdirSync(join(workspace, `d${at}`))
    for (let file = 0; file < filesEach; file++)
      writeFileSync(join(workspace, `d${at}`, `f${file}.txt`), `file ${at} ${file}\n`.repeat(20))
  }
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: workspace, stdio: "ignore" })
  git("init", "--quiet")
  git("add", "--all")
  git("commit", "--quiet", "--message=first")
}

export const run: Bench["run"] = async ({ progress }) => {
  const rounds = Math.ceil(positive("BENCH_ROUNDS", 20))
  const ground = await makeGround()
  const busyOthers = watchOthers()
  try {
    progress(`a repository of ${directories * filesEach} files, ${rounds} batches`)
    layOut(ground.workspace)
    const home = join(ground.base, "home")
    const made = makeCheckpoints(
      checkpointPlace({ dataDirectory: ground.data, home }, ground.processes),
      Scope.makeUnsafe()
    )
    const take = () =>
      Effect.runPromise(made.take({ workspace: ground.workspace, conversation_id: "conv_00000000" })).then(
        ({ duration_ms: ms }) => ms
      )
    const first = await take()
    const [ahead, cold]: [Array<number>, Array<number>] = [[], []]
    const change = (round: number, text: string): void => {
      for (let at = 0; at < 3; at++) writeFileSync(join(ground.workspace, `d${at}`, `f${round % filesEach}.txt`), text)
    }
    for (let round = 0; round < rounds; round++) {
      change(round, `changed ${round}`)
      cold.push(await take())
      ahead.push(await take())
    }
    const row = (name: string, value: number) => ({ name, value, unit: "ms" })
    const value = median(ahead)
    return [
      { ...row("checkpoint before a batch", value), target: targetMs, met: value <= targetMs },
      row("checkpoint with 3 changed files, nothing taken up ahead", median(cold)),
      row("first checkpoint of a workspace", first),
      { name: "cores that other processes kept busy, own children included", value: busyOthers(), unit: "cores" }
    ]
  } finally {
    await ground.clear()
  }
}
