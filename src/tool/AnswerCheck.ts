// Checks what a person answers against the form that was asked for. The form comes from a stranger: its patterns get a
// moment to match and no more, and what cannot be checked in that time is left to whoever asked.
import { Script } from "node:vm"
import { makeArgumentCheck } from "./Arguments.ts"
import { limits } from "./Limits.ts"
import type { Input, Tool } from "./Tool.ts"

export interface AnswerForm {
  /** Of the question, for the message. */
  readonly name: string
  readonly schema: Tool["parameters"]
}

export interface AnswerCheck {
  /** What is wrong with the answer; nothing when it fits. */
  readonly problem: (form: AnswerForm, answer: unknown) => Promise<string | undefined>
}

const isDay = (text: string): boolean => {
  if (!/^\d{4}-\d\d-\d\d$/u.test(text)) return false
  const ms = Date.parse(`${text}T00:00:00Z`)
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)
}

const isMoment = (text: string): boolean =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/iu.test(text) &&
  isDay(text.slice(0, 10)) &&
  !Number.isNaN(Date.parse(text))

const isEmail = (text: string): boolean => {
  const [local = "", domain = "", ...more] = text.split("@")
  return local !== "" && domain !== "" && more.length === 0 && !/\s/u.test(text) && !/^\.|\.\.|\.$/u.test(domain)
}

const formats: Readonly<Record<string, (text: string) => boolean>> = {
  date: isDay,
  "date-time": isMoment,
  email: isEmail,
  uri: (text) => /^[a-z][a-z0-9+.-]*:\S+$/iu.test(text) && URL.canParse(text)
}

const matching = new Script("new RegExp(pattern, 'u').test(text)")

type Matches = (pattern: string, text: string) => boolean

/** Matches the patterns of one form. True also of what is no pattern, and of what comes when their time is up. */
const makeMatcher = (): Matches => {
  const endMs = performance.now() + limits.patternsMs
  return (pattern, text) => {
    const timeout = Math.floor(endMs - performance.now())
    if (timeout < 1) return true
    try {
      return matching.runInNewContext({ pattern, text }, { timeout }) === true
    } catch {
      return true
    }
  }
}

const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

interface TextField {
  readonly name: string
  readonly field: Readonly<Record<string, unknown>>
  readonly text: string
}

const textProblem = ({ field, name, text }: TextField, matches: Matches): string | undefined => {
  const { format, pattern } = field
  if (typeof format === "string" && Object.hasOwn(formats, format) && formats[format]?.(text) === false)
    return `${name} is no ${format}`
  if (typeof pattern === "string" && !matches(pattern, text)) return `${name} does not match ${pattern.slice(0, 200)}`
  return undefined
}

/** Forms are flat: a field is a text, a number, a yes or no, or a choice. */
const textProblems = (schema: AnswerForm["schema"], answer: Input): ReadonlyArray<string> => {
  const { properties } = schema
  if (!isMap(properties)) return []
  const matches = makeMatcher()
  return Object.entries(properties).flatMap(([name, field]) => {
    const text = Object.hasOwn(answer, name) ? answer[name] : undefined
    const problem = isMap(field) && typeof text === "string" ? textProblem({ name, field, text }, matches) : undefined
    return problem === undefined ? [] : [problem]
  })
}

export const makeAnswerCheck = (): AnswerCheck => {
  const shapes = makeArgumentCheck()
  return {
    problem: async ({ name, schema }, answer) => {
      const shape = await shapes.check({ name, parameters: schema, provenance: "mcp" }, answer)
      if (shape._tag === "Invalid") return shape.message
      const problems = textProblems(schema, shape.input)
      return problems.length === 0 ? undefined : `${name}: ${problems.slice(0, limits.problemsMax).join("; ")}`
    }
  }
}
