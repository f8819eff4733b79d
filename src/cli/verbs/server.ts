// `echs server`: starts, stops or shows the server in the background. `echs serve` runs one in the foreground.
import { Client } from "../../client/Client.ts"
import { duration } from "../render/Text.ts"
import { defaultIdle, idleArgs, type ServerInfo, type StartServerParts } from "../shared/BackgroundServer.ts"
import { type ExitCode, exitCode, type Verb } from "../Verb.ts"
import { dataOption, makeVerb, type OptionTable, UsageError, type VerbInput } from "../VerbSpec.ts"

export interface ServerVerbParts extends StartServerParts {
  readonly version: string
  readonly nowMs: () => number
  readonly isAlive: (pid: number) => Promise<boolean>
  readonly background: (
    data: string | undefined
  ) => Promise<{ readonly data: string; readonly log: string; readonly info: ServerInfo | undefined }>
  readonly localEndpoint: (data: string) => Promise<{ readonly url: string; readonly token: string } | undefined>
}

const options = {
  data: dataOption,
  port: { type: "string", value: "PORT", help: "start: port to listen on (default: 4600, or a free one if taken)" },
  model: { type: "string", short: "m", value: "MODEL", help: "start: model of conversations that name none" },
  idle: {
    type: "string",
    value: "TIME",
    help: `start: stop after this long without clients and without work (default: ${defaultIdle}; "never" keeps it)`
  }
} as const satisfies OptionTable

type Input = VerbInput<typeof options>

const start = async (parts: ServerVerbParts, { answer, terminal, values }: Input): Promise<ExitCode> => {
  const flags = (["port", "model"] as const).flatMap((name) => {
    const value = values[name]
    return value === undefined ? [] : [`--${name}`, value]
  })
  const started = await parts.startServer(values.data, [...flags, ...idleArgs(values.idle)])
  if (started._tag === "Failed") {
    terminal.complain(`echs server: the server could not be started: ${started.reason}\n`)
    return exitCode.failed
  }
  const { info, isNew } = started
  const { data, log } = await parts.background(values.data)
  answer({ started: isNew, ...info, data, log }, () =>
    isNew
      ? `listening on ${terminal.paint("strong", info.url)}, process ${info.pid}\n${terminal.paint("quiet", `log: ${log}`)}\n`
      : `a server is already running: ${terminal.paint("strong", info.url)}, process ${info.pid}\n`
  )
  return exitCode.done
}

const noServer = (data: string): string => `no server is running on ${data}. Start one: echs server start\n`

const status = async (parts: ServerVerbParts, { answer, terminal, values }: Input): Promise<ExitCode> => {
  const { data, info, log } = await parts.background(values.data)
  if (info === undefined) {
    answer({ running: false, data, log }, () => "")
    terminal.complain(`echs server: ${noServer(data)}`)
    return exitCode.noServer
  }
  answer({ running: true, ...info, data, log }, () =>
    [
      `listening on ${terminal.paint("strong", info.url)}`,
      `process ${info.pid}, version ${info.version}, up ${duration(parts.nowMs() - info.started_ms)}`,
      terminal.paint("quiet", `data: ${data}`),
      terminal.paint("quiet", `log:  ${log}`),
      ""
    ].join("\n")
  )
  return exitCode.done
}

const stopWithinMs = 30_000
const lookEveryMs = 50

const stop = async (parts: ServerVerbParts, { answer, terminal, values }: Input): Promise<ExitCode> => {
  const { data, info } = await parts.background(values.data)
  const endpoint = await parts.localEndpoint(data)
  if (info === undefined || endpoint === undefined) {
    answer({ stopped: false, running: false, data }, () => "")
    terminal.complain(`echs server: ${noServer(data)}`)
    return exitCode.noServer
  }
  const client = await Client.connect({ endpoint, client: { name: "echs server", version: parts.version } })
  await client.call("server.stop", { reason: "echs server stop" }).finally(() => client.close())
  const until = performance.now() + stopWithinMs
  while (performance.now() < until) {
    if (!(await parts.isAlive(info.pid))) {
      answer({ stopped: true, pid: info.pid, data }, () => `stopped (process ${info.pid})\n`)
      return exitCode.done
    }
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs))
  }
  terminal.complain(`echs server: process ${info.pid} is still stopping after ${duration(stopWithinMs)}\n`)
  return exitCode.failed
}

const actions: Readonly<Record<string, typeof start>> = { start, stop, status }

export const make = (parts: ServerVerbParts): Verb =>
  makeVerb({
    name: "server",
    takes: "start | stop | status",
    positionals: { min: 0, max: 1 },
    options,
    example: "echs server start",
    notes: [
      "Without an argument, shows the status. Exit code 3 if no server is running.",
      "A server in the background writes its log to logs/server.log in its data directory."
    ],
    run: async (input) => {
      const [name = "status"] = input.positionals
      const action = Object.hasOwn(actions, name) ? actions[name] : undefined
      if (action === undefined) throw new UsageError(`unknown action "${name}"; use start, stop or status`)
      return action(parts, input)
    }
  })
