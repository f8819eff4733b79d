// How long a command takes that only looks, beside the bare start of Node: from the start of the process to its end, in
// turns, so that what else the machine does falls on all alike.
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { launcher } from "../../support/cli.ts"
import type { Row } from "../Bench.ts"
import { comparedRow } from "../runelog/rows.ts"
import { median } from "../runelog/sampling.ts"

interface Command {
  readonly name: string
  readonly args: ReadonlyArray<string>
  /** What it ends with where no server runs. */
  readonly code: number
}

const bare: Command = { name: "node -e 0", args: ["-e", "0"], code: 0 }

const commands: ReadonlyArray<Command> = [
  bare,
  { name: "echs --help", args: [launcher, "--help"], code: 0 },
  { name: "echs ls, no server", args: [launcher, "ls"], code: 3 },
  { name: "echs tail, no server", args: [launcher, "tail", "last"], code: 3 }
]

const ROUNDS_PER_ROUND = 4

const millisecondsOf = ({ args, code, name }: Command, data: string): number => {
  const startedMs = performance.now()
  const { status } = spawnSync(process.execPath, [...args], {
    stdio: "ignore",
    env: { ...process.env, ECHS_DATA: data }
  })
  const tookMs = performance.now() - startedMs
  if (status !== code) throw new Error(`${name} ended with ${status} instead of ${code}`)
  return tookMs
}

export const measureCommands = (directory: string, rounds: number): ReadonlyArray<Row> => {
  const data = join(directory, "no-server")
  const taken = new Map<string, Array<number>>(commands.map(({ name }) => [name, []]))
  // The first start fills the compile cache, as it does for everybody.
  for (const command of commands) millisecondsOf(command, data)
  for (let round = 0; round < rounds * ROUNDS_PER_ROUND; round++) {
    for (const command of commands) taken.get(command.name)!.push(millisecondsOf(command, data))
  }
  const rowOf = ({ name }: Command): Row => ({ name, value: median(taken.get(name)!), unit: "ms" })
  const floor = rowOf(bare)
  return commands.map((command) => (command === bare ? floor : comparedRow(rowOf(command), floor)))
}
