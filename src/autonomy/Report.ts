// Reads test reports: JUnit XML, TAP, the JSON of common test runners, and what they print. A report that nothing is understood of proves
// nothing, and neither does one without a single test.

export interface Judgment {
  readonly passed: boolean
  readonly detail: string
  readonly tests: number
}

interface Counts {
  readonly tests: number
  readonly failures: number
  /** Why the run as a whole does not count, whatever its tests say. */
  readonly broken?: string
}

const judge = ({ broken, failures, tests }: Counts): Judgment => ({
  tests,
  passed: tests > 0 && failures === 0 && broken === undefined,
  detail: tests === 0 ? "it holds no test" : `${tests} tests, ${failures} failures${broken ? `; ${broken}` : ""}`
})

const attribute = /([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/gu

const numberIn = (tag: string, name: string): number => {
  const found = [...tag.matchAll(attribute)].find(([, key]) => key === name)
  const value = Number(found?.[2] ?? found?.[3] ?? 0)
  return Number.isFinite(value) ? value : 0
}

const junit = (text: string): Counts | undefined => {
  const markup = text.replace(/<!\[CDATA\[.*?\]\]>/gsu, "")
  const suites = markup.match(/<testsuite\s(?:[^>"']|"[^"]*"|'[^']*')*>/gu)
  if (suites === null) return undefined
  const sum = (name: string): number => suites.reduce((total, tag) => total + numberIn(tag, name), 0)
  const told = markup.match(/<(?:failure|error)[\s/>]/gu)?.length ?? 0
  return { tests: sum("tests"), failures: Math.max(sum("failures") + sum("errors"), told) }
}

const tap = (text: string): Counts | undefined => {
  const lines = text.match(/^(not )?ok\b.*$/gmu)
  if (lines === null) return undefined
  const failures = lines.filter((line) => line.startsWith("not ") && !/# (t[o]do|skip)/iu.test(line)).length
  const plans = [...text.matchAll(/^1\.\.(\d+)/gmu)].map(([, last]) => Number(last))
  const planned = plans.reduce((total, one) => total + one, 0)
  if (/^\s*Bail out!/mu.test(text)) return { tests: lines.length, failures, broken: "it bailed out" }
  return plans.length > 0 && planned !== lines.length
    ? { tests: lines.length, failures, broken: `${planned} were planned` }
    : { tests: lines.length, failures }
}

const count = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

const json = (text: string): Counts | undefined => {
  try {
    const report = JSON.parse(text) as Readonly<Record<string, unknown>>
    const stats = (report["stats"] ?? {}) as Readonly<Record<string, unknown>>
    const tests = count(report["numTotalTests"]) ?? count(stats["tests"]) ?? count(report["tests"])
    const failures = count(report["numFailedTests"]) ?? count(stats["failures"]) ?? count(report["failures"])
    if (tests === undefined || failures === undefined) return undefined
    return report["success"] === false ? { tests, failures, broken: "the run says it failed" } : { tests, failures }
  } catch {
    return undefined
  }
}

const total = (text: string, pattern: RegExp): number | undefined => {
  const found = [...text.matchAll(pattern)].at(-1)
  return found === undefined ? undefined : Number(found[1])
}

/** The last lines of common runners: node --test, unittest, pytest, vitest and jest. */
const summary = (text: string): Counts | undefined => {
  const node = total(text, /^\W*tests (\d+)$/gmu)
  if (node !== undefined) {
    const cancelled = total(text, /^\W*cancelled (\d+)$/gmu) ?? 0
    return { tests: node, failures: (total(text, /^\W*fail (\d+)$/gmu) ?? 0) + cancelled }
  }
  const unittest = total(text, /^Ran (\d+) tests? in /gmu)
  if (unittest !== undefined) return { tests: unittest, failures: /^FAILED \(/mu.test(text) ? 1 : 0 }
  const line = text.match(/^.*\b\d+ passed\b.*$/gmu)?.at(-1)
  if (line === undefined) return undefined
  const passed = total(line, /(\d+) passed/gu) ?? 0
  const failures = (total(line, /(\d+) failed/gu) ?? 0) + (total(line, /(\d+) errors?/gu) ?? 0)
  return { tests: passed + failures, failures }
}

/** What a run of tests printed. A program that ends well without a word about tests has run none. */
export const judgeOutput = (text: string): Judgment => {
  const counts = summary(text) ?? json(text) ?? tap(text)
  return counts === undefined ? { passed: false, tests: 0, detail: "it prints nothing about tests" } : judge(counts)
}

export const judgeReport = (text: string): Judgment => {
  const counts = json(text) ?? junit(text) ?? tap(text)
  return counts === undefined
    ? {
        passed: false,
        tests: 0,
        detail: "it is no report that is understood (JUnit XML, TAP, or JSON of a test runner)"
      }
    : judge(counts)
}
