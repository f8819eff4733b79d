// `npm run mutants [-- WORDS…] [--json]`: breaks one guard of the source at a time, in a copy, and runs the tests that must
// notice. Prints who survived. WORDS choose mutants by name or file. Exit codes: 0 every one was caught, 1 one survived or
// could not be judged, 2 no such mutant.
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { mutants } from "./list.ts"
import type { Mutant } from "./Mutant.ts"
import { type Outcome, Sandbox } from "./Sandbox.ts"

const sandboxesMax = 2
const top = join(dirname(fileURLToPath(import.meta.url)), "../..")

interface Verdict {
  readonly mutant: string
  readonly file: string
  readonly outcome: Outcome
}

/** A hang counts as noticed: a run that does not end is never taken for a green one. */
const isCaught = ({ outcome }: Verdict): boolean => outcome._tag === "Caught" || outcome._tag === "Hung"

const line = ({ file, mutant, outcome }: Verdict): string => {
  const detail = outcome._tag === "Caught" ? outcome.by : outcome._tag === "Broken" ? outcome.reason : ""
  return `${outcome._tag.toLowerCase().padEnd(9)} ${file}: ${mutant}${detail === "" ? "" : ` (${detail})`}`
}

/** Without this, "caught" would say nothing: the same tests must pass on the sound code. */
const failingWhenSound = async (sandbox: Sandbox, chosen: ReadonlyArray<Mutant>): Promise<string | undefined> => {
  const outcome = await sandbox.runTests([...new Set(chosen.flatMap(({ tests }) => tests))])
  if (outcome._tag === "Survived") return undefined
  return outcome._tag === "Caught" ? outcome.by : outcome._tag === "Broken" ? outcome.reason : "the tests hung"
}

const judge = async (chosen: ReadonlyArray<Mutant>, sandboxes: ReadonlyArray<Sandbox>): Promise<Array<Verdict>> => {
  const verdicts: Array<Verdict> = []
  const waiting = [...chosen]
  const work = async (sandbox: Sandbox): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const verdict = { mutant: next.name, file: next.file, outcome: await sandbox.tryMutant(next) }
      verdicts.push(verdict)
      process.stderr.write(`${line(verdict)}\n`)
    }
  }
  await Promise.all(sandboxes.map(work))
  return verdicts
}

const report = (verdicts: ReadonlyArray<Verdict>, json: boolean): void => {
  const rest = verdicts.filter((verdict) => !isCaught(verdict))
  const caught = verdicts.length - rest.length
  if (json) process.stdout.write(`${JSON.stringify({ mutants: verdicts.length, caught, verdicts })}\n`)
  else
    process.stdout.write(
      `${rest.map((verdict) => `${line(verdict)}\n`).join("")}${caught} of ${verdicts.length} mutants caught\n`
    )
}

const main = async (): Promise<number> => {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: { json: { type: "boolean" } } })
  const matches = ({ file, name }: Mutant) => positionals.every((word) => `${file} ${name}`.includes(word))
  const chosen = mutants.filter(matches)
  if (chosen.length === 0) {
    process.stderr.write(
      `no mutant matches "${positionals.join(" ")}"; without words all ${mutants.length} are tried\n`
    )
    return 2
  }
  const sandboxes = Array.from({ length: Math.min(sandboxesMax, chosen.length) }, () => new Sandbox(top))
  try {
    const failing = await failingWhenSound(sandboxes[0]!, chosen)
    if (failing !== undefined) {
      process.stderr.write(`the sound code fails already: ${failing}\n`)
      return 1
    }
    const verdicts = await judge(chosen, sandboxes)
    report(verdicts, values.json === true)
    return verdicts.every(isCaught) ? 0 : 1
  } finally {
    for (const sandbox of sandboxes) sandbox.close()
  }
}

process.exitCode = await main()
