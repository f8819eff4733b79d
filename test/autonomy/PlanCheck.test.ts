// Goal: a plan that cannot be executed is refused in words a model can act on, all problems at once; one that comes through
// can be executed. Method: examples of each fault, and random graphs with and without cycles.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { limits } from "#src/autonomy/GoalLimits.ts"
import { parseTasks } from "#src/autonomy/PlanCheck.ts"
import { cycleOf } from "#src/machine/decide/TaskGraph.ts"

const evidence = [{ type: "command", command: "npm test" }]
const task = (id: string, more: object = {}) => ({ id, title: id, instructions: `do ${id}`, evidence, ...more })

const problemsOf = (tasks: unknown) => {
  const parsed = parseTasks(tasks)
  return parsed._tag === "Faulty" ? parsed.problems : []
}

describe("a plan", () => {
  it("that is sound comes through, with defaults filled in and a command line made a program", () => {
    const parsed = parseTasks([
      task("a", { priority: "high", role: "explorer", success_criteria: ["green"] }),
      task("b", {
        depends_on: ["a"],
        evidence: [
          { type: "command", command: ["make", "check"], expected_exit: 2 },
          { type: "file", path: "out.txt" },
          { type: "report", path: "junit.xml", command: "make test" }
        ]
      })
    ])
    expect(parsed).toMatchObject({
      _tag: "Sound",
      value: [
        {
          task_id: "a",
          priority: "high",
          role: "explorer",
          success_criteria: ["green"],
          depends_on: [],
          evidence: [{ type: "command", command: ["sh", "-c", "npm test"], expected_exit: 0 }]
        },
        {
          task_id: "b",
          priority: "medium",
          depends_on: ["a"],
          evidence: [
            { type: "command", command: ["make", "check"], expected_exit: 2 },
            { type: "file", path: "out.txt" },
            { type: "tests", command: ["sh", "-c", "make test"], report: "junit.xml" }
          ]
        }
      ]
    })
  })

  it.each([
    ["nothing at all", undefined, /at least one task/],
    ["an empty list", [], /at least one task/],
    ["no object", ["a"], /tasks\[0\]: must be an object/],
    ["no id", [{ ...task("a"), id: "" }], /tasks\[0\]\.id: must be text/],
    ["an id that cannot be one", [task("a b")], /tasks\[0\]\.id: may have up to 64 letters/],
    ["two tasks of one id", [task("a"), task("a")], /a: there are two tasks with this id/],
    [
      "a dependency that is not there",
      [task("a", { depends_on: ["b"] })],
      /a: depends on b, and there is no such task/
    ],
    ["a task that waits for itself", [task("a", { depends_on: ["a"] })], /wait for each other: a → a/],
    [
      "a cycle",
      [task("a", { depends_on: ["c"] }), task("b", { depends_on: ["a"] }), task("c", { depends_on: ["b"] })],
      /wait for each other: a → c → b → a/
    ],
    ["no evidence", [task("a", { evidence: [] })], /tasks\[0\]\.evidence: is missing\. Say how it will be shown/],
    ["evidence of no kind", [task("a", { evidence: [{ type: "hope" }] })], /must be one of command, tests, file/],
    ["a report that nobody ran", [task("a", { evidence: [{ type: "report", path: "r.xml" }] })], /proves nothing/],
    [
      "an address elsewhere",
      [task("a", { evidence: [{ type: "http", start: "x", url: "http://a.b/" }] })],
      /127\.0\.0\.1/
    ],
    ["a way out", [task("a", { evidence: [{ type: "file", path: "../x" }] })], /is outside the workspace/],
    [
      "a number that may go anywhere",
      [task("a", { evidence: [{ type: "delta", name: "n", command: "x" }] })],
      /may: must be/
    ],
    ["a limit of nothing", [task("a", { evidence: [{ type: "diff" }] })], /give max_files/],
    ["a value nowhere", [task("a", { evidence: [{ type: "json", pointer: "/a", equals: 1 }] })], /a path or a command/],
    ["evidence that is no object", [task("a", { evidence: ["npm test"] })], /must be an object with a type/],
    ["an empty command", [task("a", { evidence: [{ type: "command", command: [] }] })], /command: is empty/],
    ["no command", [task("a", { evidence: [{ type: "command" }] })], /command: must be/],
    ["a command that is a number", [task("a", { evidence: [{ type: "command", command: 7 }] })], /must be a list/],
    ["an exit that is none", [task("a", { evidence: [{ ...evidence[0], expected_exit: "0" }] })], /whole number/],
    ["a file without a path", [task("a", { evidence: [{ type: "file" }] })], /path: must be text/],
    ["an unknown priority", [task("a", { priority: "asap" })], /must be critical, high, medium or low/],
    ["dependencies that are no list", [task("a", { depends_on: "b" })], /depends_on: must be a list/],
    ["a title that is too long", [task("a", { title: "x".repeat(600) })], /title: is longer than 512 characters/],
    ["too much evidence", [task("a", { evidence: Array(20).fill(evidence[0]) })], /has more than 16 entries/],
    ["too many dependencies", [task("a", { depends_on: Array(70).fill("b") })], /has more than 64 entries/]
  ])("with %s is refused", (_what, tasks, problem) => {
    expect(problemsOf(tasks).join("\n")).toMatch(problem)
  })

  it("of a thousand tasks is refused, and one of 999 is not", () => {
    const many = (count: number) => Array.from({ length: count }, (_, index) => task(`t${index}`))
    expect(problemsOf(many(limits.tasksMax))).toEqual([
      "tasks: a plan has fewer than 1000 tasks, this one has 1000: group them"
    ])
    expect(problemsOf(many(limits.tasksMax - 1))).toEqual([])
  })

  it("hears all of its problems at once, up to a dozen", () => {
    expect(problemsOf([{ id: "a" }])).toHaveLength(3)
    const bad = problemsOf(Array.from({ length: 9 }, () => ({})))
    expect(bad).toHaveLength(limits.problemsMax + 1)
    expect(bad.at(-1)).toBe("and 24 more problems")
  })
})

describe("a cycle", () => {
  const edges = fc.array(fc.tuple(fc.nat(29), fc.nat(29)), { maxLength: 80 })

  it("is found if and only if there is one, and what is named is one", () => {
    fc.assert(
      fc.property(edges, (list) => {
        const tasks = Array.from({ length: 30 }, (_, index) => ({
          task_id: `t${index}`,
          depends_on: list.filter(([from]) => from === index).map(([, to]) => `t${to}`)
        })) as never as Parameters<typeof cycleOf>[0]
        const cycle = cycleOf(tasks)
        const needs = (id: string) => tasks.find((one) => one.task_id === id)?.depends_on ?? []
        const reaches = (from: string, seen = new Set<string>()): boolean =>
          needs(from).some((id) => id === from || (!seen.has(id) && walk(id, from, seen.add(id))))
        const walk = (at: string, goal: string, seen: Set<string>): boolean =>
          needs(at).some((id) => id === goal || (!seen.has(id) && walk(id, goal, seen.add(id))))
        expect(cycle !== undefined).toBe(tasks.some((one) => reaches(one.task_id)))
        if (cycle === undefined) return
        expect(cycle.at(0)).toBe(cycle.at(-1))
        for (const [index, id] of cycle.slice(0, -1).entries()) expect(needs(id)).toContain(cycle[index + 1])
      }),
      { numRuns: 300 }
    )
  })
})
