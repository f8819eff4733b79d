// Reads test reports: JUnit XML, TAP, and the JSON of common test runners. A report that nothing is understood of proves
// nothing, and neither does one without a single test.

export interface Judgement {
  readonly passed: boolean
  readonly detail: string
}

interface Counts {
  readonly tests: number
  readonly failures: number
}

const judge = ({ failures, tests }: Counts): Judgement => ({
  passed: tests > 0 && failures === 0,
  detail: tests === 0 ? "it holds no test" : `${tests} tests, ${failures} failures`
})

const numberIn = (tag: string, name: string): number =>
  Number(new RegExp(`\\b${name}="(\\d+)"`, "u").exec(tag)?.[1] ?? 0)

const junit = (text: string): Counts | undefined => {
  const suites = text.match(/<testsuite\s[^>]*>/gu)
  if (suites === null) return undefined
  const sum = (name: string): number => suites.reduce((total, tag) => total + numberIn(tag, name), 0)
  return { tests: sum("tests"), failures: sum("failures") + sum("errors") }
}

const tap = (text: string): Counts | undefined => {
  const lines = text.match(/^(not )?ok\b.*$/gmu)
  if (lines === null) return undefined
  const failures = lines.filter((line) => line.startsWith("not ") && !/# (t[o]do|skip)/iu.test(line)).length
  return { tests: lines.length, failures }
}

const count = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

const json = (text: string): Counts | undefined => {
  try {
    const report = JSON.parse(text) as Readonly<Record<string, unknown>>
    const stats = (report["stats"] ?? {}) as Readonly<Record<string, unknown>>
    const tests = count(report["numTotalTests"]) ?? count(stats["tests"]) ?? count(report["tests"])
    const failures = count(report["numFailedTests"]) ?? count(stats["failures"]) ?? count(report["failures"])
    return tests === undefined || failures === undefined ? undefined : { tests, failures }
  } catch {
    return undefined
  }
}

export const judgeReport = (text: string): Judgement => {
  const counts = json(text) ?? junit(text) ?? tap(text)
  return counts === undefined
    ? { passed: false, detail: "it is no report that is understood (JUnit XML, TAP, or JSON of a test runner)" }
    : judge(counts)
}
