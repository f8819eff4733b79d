// `echs doctor`: prints what is installed, what is configured and what is wrong. Needs no server.
import { oneLine } from "../render/Text.ts"
import { exitCode, type Tone, type Verb } from "../Verb.ts"
import { dataOption, makeVerb } from "../VerbSpec.ts"

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

export const make = (parts: DoctorParts): Verb =>
  makeVerb({
    name: "doctor",
    options: { data: dataOption },
    example: "echs doctor",
    notes: ["Exit code 1 if a problem keeps ECHS from working."],
    run: async ({ answer, terminal, values }) => {
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
