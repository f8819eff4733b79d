// The command as a person feels it: how long it takes to start, until a chat can be typed into, and until a key is seen
// while a model writes 200 pieces a second. Starts take turns with an empty Node in the same run.
import { spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { spawn } from "@lydell/node-pty"
import { launcher } from "../support/cli.ts"
import type { Bench, Row } from "./Bench.ts"

const rounds = 10
const chats = 5
const keys = 200
const keyEveryMs = 25

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? 0
const percentile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((left, right) => left - right)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? 0

type Environment = Readonly<Record<string, string>>

const timed = (args: ReadonlyArray<string>, env: Environment): number => {
  const startedMs = performance.now()
  const run = spawnSync(process.execPath, args, { env, stdio: "ignore" })
  if (run.status !== 0) throw new Error(`${args.join(" ")} ended with ${run.status}`)
  return performance.now() - startedMs
}

const startRows = (env: Environment): ReadonlyArray<Row> => {
  const subjects: Readonly<Record<string, ReadonlyArray<string>>> = {
    "node -e 0": ["-e", "0"],
    "echs --help": [launcher, "--help"],
    "echs ls": [launcher, "ls"]
  }
  const times = new Map(Object.keys(subjects).map((name) => [name, [] as Array<number>]))
  for (let round = 0; round < rounds; round += 1)
    for (const [name, args] of Object.entries(subjects)) times.get(name)?.push(timed(args, env))
  const base = median(times.get("node -e 0") ?? [])
  return [...times].map(([name, values]) => {
    const value = median(values)
    if (name === "node -e 0") return { name, value, unit: "ms" }
    return { name, value, unit: "ms", baseline: "node -e 0", ratio: value / base }
  })
}

/** A chat at a terminal of its own, with all that it has written since it was last asked. */
const openChat = (env: Environment, cwd: string, model: string) => {
  const startedMs = performance.now()
  const args = [launcher, "--model", model]
  const child = spawn(process.execPath, args, { cols: 100, rows: 40, cwd, env: { ...env } })
  let text = ""
  let wake = (): void => {}
  child.onData((data) => {
    text += data
    wake()
  })
  const until = async (sign: string): Promise<number> => {
    while (!text.includes(sign)) await new Promise<void>((resolve) => (wake = resolve))
    text = text.slice(text.indexOf(sign) + sign.length)
    return performance.now()
  }
  return { child, startedMs, until }
}

const readyRow = async (env: Environment, cwd: string): Promise<Row> => {
  const times: Array<number> = []
  for (let at = 0; at < chats; at += 1) {
    const { child, startedMs, until } = openChat(env, cwd, "scripted/echo")
    times.push((await until("─ ready")) - startedMs)
    child.kill("SIGKILL")
  }
  const value = median(times)
  return { name: "chat: prompt ready, server running", value, unit: "ms", target: 400, met: value <= 400 }
}

const keyRow = async (env: Environment, cwd: string): Promise<Row> => {
  const { child, until } = openChat(env, cwd, "scripted/fast.json")
  await until("─ ready")
  child.write("go\r")
  await until("─ writing")
  const times: Array<number> = []
  let typed = ""
  for (let at = 0; at < keys; at += 1) {
    typed = at % 40 === 0 ? "" : typed
    if (typed === "") child.write("\u0015")
    const letter = "abcdefghijklmnopqrstuvwxyz"[at % 26] ?? "a"
    typed += letter
    const pressedMs = performance.now()
    child.write(letter)
    times.push((await until(`${typed}`)) - pressedMs)
    await new Promise((resolve) => setTimeout(resolve, keyEveryMs))
  }
  child.kill("SIGKILL")
  const value = percentile(times, 0.99)
  return { name: "chat: key to echo, p99, at 200 pieces/s", value, unit: "ms", target: 16, met: value <= 16 }
}

export const run: Bench["run"] = async ({ directory, progress }) => {
  const data = join(directory, "data")
  const workspace = join(directory, "workspace")
  mkdirSync(workspace)
  const fast = { name: "fast", replies: [{ play: [{ text: "word ".repeat(4_000), chunk_chars: 5, delay_ms: 5 }] }] }
  writeFileSync(join(directory, "fast.json"), JSON.stringify(fast))
  const { HOME = "/", PATH = "" } = process.env
  const env = { HOME, PATH, ECHS_DATA: data, ECHS_SCENARIOS: directory, TERM: "xterm-256color", LANG: "C.UTF-8" }
  timed([launcher, "server", "start"], env)
  try {
    progress("starts")
    const starts = startRows(env)
    progress("chats")
    return [...starts, await readyRow(env, workspace), await keyRow(env, workspace)]
  } finally {
    timed([launcher, "server", "stop"], env)
  }
}
