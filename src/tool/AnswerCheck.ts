// Checks what a person answers against the form that was asked for: its shape, and the formats of its texts. The form
// comes from a stranger: its patterns are left to whoever asked, for one can be made to take for ever.
import { makeArgumentCheck } from "./Arguments.ts"
import type { Input, Tool } from "./Tool.ts"
import { limits } from "./ToolLimits.ts"

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

const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const formatProblem = (name: string, format: unknown, text: string): string | undefined =>
  typeof format === "string" && Object.hasOwn(formats, format) && formats[format]?.(text) === false
    ? `${name} is no ${format}`
    : undefined

/** Forms are flat: a field is a text, a number, a yes or no, or a choice. */
const textProblems = (schema: AnswerForm["schema"], answer: Input): ReadonlyArray<string> => {
  const { properties } = schema
  if (!isMap(properties)) return []
  return Object.entries(properties).flatMap(([name, field]) => {
    const text = Object.hasOwn(answer, name) ? answer[name] : undefined
    const problem = isMap(field) && typeof text === "string" ? formatProblem(name, field["format"], text) : undefined
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
