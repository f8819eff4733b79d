// Reads a check as a model wrote it. What is wrong with it is told in words the model can act on.
import { specIssue } from "../../rune/Demands.ts"
import type { EvidenceSpec } from "../../rune/kinds/evidence.ts"
import type { Problems } from "../Problems.ts"
import { list, object, text } from "../tools/Schema.ts"

type Json = Readonly<Record<string, unknown>>

export const evidenceTypes = ["command", "tests", "file", "http", "json", "delta", "diff", "unchanged"] as const

/** As models are told. */
export const evidenceSchema = list(
  object(
    {
      type: { enum: evidenceTypes },
      command: {
        anyOf: [text("a shell command line"), list({ type: "string" }, "a program and its arguments")],
        description: "command, tests, delta, json: what the server runs"
      },
      expected_exit: { type: "integer", description: "command: 0 unless told" },
      path: text("file, json: of the file"),
      report: text("tests: file that the command writes (JUnit XML, TAP, JSON); without it, what it prints is counted"),
      min_tests: { type: "integer", description: "tests: at least so many must run" },
      start: text("http: command line that brings the server up"),
      url: text("http: address on 127.0.0.1"),
      status: { type: "integer", description: "http: 200 unless told" },
      includes: text("http: text that the answer holds"),
      pointer: text("json: JSON pointer of the value, such as /version"),
      equals: { description: "json: what the value must be" },
      name: text("delta: what is counted, such as lint problems"),
      after: text("delta: words before the number in the output; else the last number counts"),
      may: { enum: ["fall", "rise"], description: "delta: the way in which the number may move" },
      max_files: { type: "integer", description: "diff" },
      max_lines: { type: "integer", description: "diff" },
      only: list({ type: "string" }, "diff: paths that may change"),
      paths: list({ type: "string" }, "unchanged: paths that must not change")
    },
    ["type"]
  ),
  "how the server will see that the task is done; at least one that fails now and passes when it is done"
)

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

const argvOf = (problems: Problems, where: string, value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return ["sh", "-c", problems.text(where, value)]
  const argv = problems.texts(where, value ?? "", 256)
  if (Array.isArray(value) && value.length === 0) problems.add(where, "is empty")
  return argv
}

const whole = (problems: Problems, where: string, value: unknown): number | undefined => {
  if (value === undefined || value === null) return undefined
  if (Number.isSafeInteger(value)) return Number(value)
  problems.add(where, "must be a whole number")
  return undefined
}

/** The fields without those that were left out. */
const given = <Fields extends object>(fields: Fields): { [K in keyof Fields]: Exclude<Fields[K], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never

const named = (problems: Problems, where: string, value: unknown): string | undefined =>
  value === undefined || value === null ? undefined : problems.text(where, value, 4096)

type Read = (problems: Problems, where: string, value: Json) => EvidenceSpec

const testsOf: Read = (problems, where, value) =>
  given({
    type: "tests",
    command: argvOf(problems, `${where}.command`, value["command"]),
    report: named(problems, `${where}.report`, value["report"] ?? value["path"]),
    min_tests: whole(problems, `${where}.min_tests`, value["min_tests"])
  }) as EvidenceSpec

const readers: { readonly [Type in (typeof evidenceTypes)[number] | "report"]: Read } = {
  command: (problems, where, value) => ({
    type: "command",
    command: argvOf(problems, `${where}.command`, value["command"]),
    expected_exit: whole(problems, `${where}.expected_exit`, value["expected_exit"]) ?? 0
  }),
  file: (problems, where, value) => ({ type: "file", path: problems.text(`${where}.path`, value["path"], 4096) }),
  tests: testsOf,
  /** Whoever names the command means `tests`. */
  report: (problems, where, value) =>
    value["command"] === undefined
      ? { type: "report", path: problems.text(`${where}.path`, value["path"], 4096) }
      : testsOf(problems, where, value),
  http: (problems, where, value) =>
    given({
      type: "http",
      start: argvOf(problems, `${where}.start`, value["start"] ?? value["command"]),
      url: problems.text(`${where}.url`, value["url"], 4096),
      status: whole(problems, `${where}.status`, value["status"]),
      includes: named(problems, `${where}.includes`, value["includes"])
    }) as EvidenceSpec,
  json: (problems, where, value) =>
    given({
      type: "json",
      path: named(problems, `${where}.path`, value["path"]),
      command: value["command"] === undefined ? undefined : argvOf(problems, `${where}.command`, value["command"]),
      pointer: typeof value["pointer"] === "string" ? value["pointer"] : "",
      equals: value["equals"] ?? null
    }) as EvidenceSpec,
  delta: (problems, where, value) => {
    const { may } = value
    if (may !== "fall" && may !== "rise") problems.add(`${where}.may`, 'must be "fall" or "rise"')
    return given({
      type: "delta",
      name: problems.text(`${where}.name`, value["name"], 200),
      command: argvOf(problems, `${where}.command`, value["command"]),
      after: named(problems, `${where}.after`, value["after"]),
      may: may === "rise" ? "rise" : "fall"
    }) as EvidenceSpec
  },
  diff: (problems, where, value) =>
    given({
      type: "diff",
      max_files: whole(problems, `${where}.max_files`, value["max_files"]),
      max_lines: whole(problems, `${where}.max_lines`, value["max_lines"]),
      only: value["only"] === undefined ? undefined : problems.texts(`${where}.only`, value["only"], 64)
    }) as EvidenceSpec,
  unchanged: (problems, where, value) => ({
    type: "unchanged",
    paths: problems.texts(`${where}.paths`, value["paths"] ?? [], 64)
  })
}

export const readEvidence = (problems: Problems, where: string, value: unknown): EvidenceSpec | undefined => {
  if (!isObject(value)) {
    problems.add(where, "must be an object with a type")
    return undefined
  }
  const type = String(value["type"])
  if (!Object.hasOwn(readers, type)) {
    problems.add(`${where}.type`, `must be one of ${evidenceTypes.join(", ")}`)
    return undefined
  }
  const before = problems.list.length
  const spec = readers[type as keyof typeof readers](problems, where, value)
  const issue = problems.list.length === before ? specIssue(spec) : undefined
  if (issue !== undefined) problems.add(where, issue)
  return spec
}
