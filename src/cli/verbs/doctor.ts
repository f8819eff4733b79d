// `echs doctor`: prints what is installed, what is configured and what is wrong. Needs no server, except for `--fibers`,
// which prints what a running server is doing.
import type { Client } from "../../client/Client.ts"
import { type RemoteParts, withServer } from "../Remote.ts"
import { oneLine } from "../render/Text.ts"
import { exitCode, type Tone, type Verb } from "../Verb.ts"
import { dataOption, makeVerb, type OptionTable, type VerbInput } from "../VerbSpec.ts"

export interface Finding {
  readonly name: string
  readonly level: "good" | "notice" | "bad"
  readonly text: string
}

export interface DoctorParts {
  readonly examine: (data: string | undefined) => Promise<ReadonlyArray<Finding>>
}

const tones: Readonly<Record<Finding["level"], readonly [Tone, string]>> = {
  good: ["good", "✓"],
  notice: ["notice", "!"],
  bad: ["bad", "✗"]
}

const printFibers = async (
  client: Client,
  { answer, terminal }: Pick<VerbInput<OptionTable>, "answer" | "terminal">
) => {
  const fibers = await client.call("server.fibers", {})
  const { items, left_out: leftOut } = fibers
  answer(fibers, () => {
    const lines = items.map(({ depth, fiber_id: id, name }) => {
      const number = id === undefined ? "" : ` ${terminal.paint("quiet", `#${id}`)}`
      return `${"  ".repeat(depth)}${oneLine(name)}${number}\n`
    })
    const rest = leftOut > 0 ? [`${leftOut} more fibers are not shown\n`] : []
    return lines.length === 0 ? "no conversation is at work\n" : [...lines, ...rest].join("")
  })
  return exitCode.done
}

export const make = (parts: DoctorParts & RemoteParts): Verb =>
  makeVerb({
    name: "doctor",
    options: {
      data: dataOption,
      fibers: {
        type: "boolean",
        help: "print what a running server is doing: conversations, agents, turns, model calls, tools and hooks"
      }
    },
    example: "echs doctor",
    notes: ["Exit code 1 if a problem keeps ECHS from working."],
    run: async (input) => {
      const { answer, terminal, values } = input
      if (values.fibers === true)
        return withServer(parts, { name: "doctor" }, input, (client) => printFibers(client, input))
      const items = await parts.examine(values.data)
      const isWell = items.every(({ level }) => level !== "bad")
      const width = Math.max(...items.map(({ name }) => name.length))
      answer({ well: isWell, items }, () =>
        items
          .map(({ level, name, text }) => {
            const [tone, mark] = tones[level]
            return `${terminal.paint(tone, mark)} ${terminal.paint("strong", name.padEnd(width))}  ${oneLine(text)}\n`
          })
          .join("")
      )
      return isWell ? exitCode.done : exitCode.failed
    }
  })
