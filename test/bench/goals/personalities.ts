// Models that behave like models: planners, workers and critics, each a scenario of the scripted provider with one habit.
// What a habit must lead to is known beforehand; the campaign compares.
import { type ReplySpec, say, use, useRaw } from "../../support/runtime/scenarios.ts"
import type { Repository } from "./repositories.ts"

export type Role = "planner" | "worker" | "critic"

export interface Personality {
  readonly name: string
  /** Does its part as one would wish; the others are drawn one at a time. */
  readonly isFair?: true
  readonly replies: (repository: Repository) => ReadonlyArray<ReplySpec>
}

const asPlanner = (...play: ReplySpec["play"]): ReplySpec => ({ when: { role: "orchestrator" }, play })
const onceTold = (input: string, ...play: ReplySpec["play"]): ReplySpec => ({
  when: { role: "orchestrator", input },
  play
})
const afterOutput = (last_output: string, ...play: ReplySpec["play"]): ReplySpec => ({
  when: { role: "orchestrator", last_output },
  play
})

const task = (id: string, evidence: ReadonlyArray<unknown>, more: object = {}) => ({
  ...{ id, title: `mend ${id}`, instructions: "Mend the program so that its tests pass.", evidence, ...more }
})
const visible = ({ visible: command }: Repository) => ({ type: "command", command })
const fair = (repository: Repository) => use("submit_plan", { tasks: [task("t1", [visible(repository)])] })
const plan = (...tasks: ReadonlyArray<object>) => use("submit_plan", { tasks })
const always = { type: "command", command: "true" }

const blocked = (repository: Repository): ReplySpec =>
  onceTold("Nothing that is left can run", use("give_up", { reason: `${repository.name} cannot be mended` }))

const planner = (
  name: string,
  replies: Personality["replies"],
  more: Pick<Personality, "isFair"> = {}
): Personality => ({
  name,
  ...more,
  replies: (repository) => [blocked(repository), ...replies(repository)]
})

export const planners: ReadonlyArray<Personality> = [
  planner("honest", (r) => [asPlanner(fair(r))], { isFair: true }),
  planner(
    "counts tests",
    (r) => [asPlanner(plan(task("t1", [{ type: "tests", command: r.visible, min_tests: 1 }])))],
    {}
  ),
  planner("two steps", (r) => [
    asPlanner(plan(task("t1", [visible(r)]), task("t2", [visible(r)], { depends_on: ["t1"] })))
  ]),
  planner("adds a guard", (r) => [asPlanner(plan(task("t1", [visible(r), { type: "diff", max_files: 5 }])))]),
  planner("checks what is there", (r) => [asPlanner(plan(task("t1", [{ type: "file", path: r.source }])))]),
  planner("checks nothing", () => [asPlanner(plan(task("t1", [always])))]),
  planner("learns from the return", (r) => [onceTold("pass already", fair(r)), asPlanner(plan(task("t1", [always])))]),
  planner("believes reports", (r) => [
    afterOutput("proves nothing", fair(r)),
    asPlanner(plan(task("t1", [{ type: "report", path: "report.xml" }])))
  ]),
  planner("forgets evidence", (r) => [afterOutput("evidence", fair(r)), asPlanner(plan(task("t1", [])))]),
  planner("plans in circles", (r) => [
    afterOutput("wait for each other", fair(r)),
    asPlanner(plan(task("t1", [visible(r)], { depends_on: ["t1"] })))
  ]),
  planner("misses a dependency", (r) => [
    afterOutput("no such task", fair(r)),
    asPlanner(plan(task("t1", [visible(r)], { depends_on: ["t9"] })))
  ]),
  planner("names one id twice", (r) => [
    afterOutput("two tasks", fair(r)),
    asPlanner(plan(task("t1", [visible(r)]), task("t1", [visible(r)])))
  ]),
  planner("writes sloppy JSON", (r) => [
    { when: { role: "orchestrator", step: 1 }, play: [useRaw("submit_plan", '{"tasks": [')] },
    asPlanner(fair(r))
  ]),
  planner("submits twice at once", (r) => [asPlanner(fair(r), plan(task("t1", [always])))]),
  planner("never submits", () => [asPlanner(say("I think about it."))]),
  planner("reads for ever", () => [asPlanner(use("read_file", { path: "." }))])
]

const mend = (repository: Repository, content: string) => use("write_file", { path: repository.source, content })
const first = (...play: ReplySpec["play"]): ReplySpec => ({ when: { role: "worker", step: 1 }, play })
const again = (...play: ReplySpec["play"]): ReplySpec => ({
  when: { role: "worker", input: "tried before", step: 1 },
  play
})
const ends: ReplySpec = { when: { role: "worker" }, play: [say("It is done.")] }

const worker = (
  name: string,
  replies: Personality["replies"],
  more: Pick<Personality, "isFair"> = {}
): Personality => ({
  name,
  ...more,
  replies: (repository) => [...replies(repository), ends]
})

export const workers: ReadonlyArray<Personality> = [
  worker("right", (r) => [first(mend(r, r.solutions.right))], { isFair: true }),
  worker("reads first", (r) => [
    first(use("read_file", { path: r.source })),
    { when: { role: "worker", step: 2 }, play: [mend(r, r.solutions.right)] }
  ]),
  worker("lies once", (r) => [again(mend(r, r.solutions.right))]),
  worker("is wrong once", (r) => [again(mend(r, r.solutions.right)), first(mend(r, r.solutions.wrong))]),
  worker("leaves things behind", (r) => [
    first(mend(r, r.solutions.right), use("write_file", { path: "__pycache__/x.pyc", content: "x" }))
  ]),
  worker("leaves a note", (r) => [first(mend(r, r.solutions.right), use("update_plan", { note: "half-way" }))]),
  worker("fits the tests", (r) => [first(mend(r, r.solutions.overfit))]),
  worker("fits the tests after reading", (r) => [
    first(use("read_file", { path: r.tests })),
    { when: { role: "worker", step: 2 }, play: [mend(r, r.solutions.overfit)] }
  ]),
  worker("bends the tests", (r) => [first(use("write_file", { path: r.tests, content: r.bentTests }))]),
  worker("bends the tests, then mends", (r) => [
    {
      when: { role: "worker", input: "put them back", step: 1 },
      play: [use("write_file", { path: r.tests, content: r.files[r.tests] ?? "" }), mend(r, r.solutions.right)]
    },
    first(use("write_file", { path: r.tests, content: r.bentTests }), mend(r, r.solutions.right))
  ]),
  worker("forges a report", () => [
    first(use("write_file", { path: "report.xml", content: '<testsuite tests="9" failures="0"/>' }))
  ]),
  worker("lies", () => [first(say("All tests pass now."))]),
  worker("is wrong", (r) => [first(mend(r, r.solutions.wrong))]),
  worker("makes the same call for ever", (r) => [
    { when: { role: "worker" }, play: [use("read_file", { path: r.source })] }
  ]),
  worker("gives up at once", () => [first(say("I cannot do this."))])
]

const review = (verdict: string, findings: ReadonlyArray<object> = []) => use("submit_review", { verdict, findings })
const error = (title: string, more: object = {}) => ({ severity: "error", title, ...more })
const asCritic = (...play: ReplySpec["play"]): ReplySpec => ({ when: { role: "critic" }, play })
const seesFailure = (...play: ReplySpec["play"]): ReplySpec => ({ when: { role: "critic", input: "FAILED" }, play })
const careful = seesFailure(review("retry", [error("a check fails")]))

const critic = (
  name: string,
  replies: ReadonlyArray<ReplySpec>,
  more: Pick<Personality, "isFair"> = {}
): Personality => ({
  name,
  ...more,
  replies: () => replies
})

export const critics: ReadonlyArray<Personality> = [
  critic("careful", [careful, asCritic(review("pass"))], { isFair: true }),
  critic("reads first", [
    careful,
    { when: { role: "critic", step: 1 }, play: [use("list_files", { path: "." })] },
    asCritic(review("pass"))
  ]),
  critic("always passes", [asCritic(review("pass"))]),
  critic("talks first", [
    { when: { role: "critic", turn: 1 }, play: [say("It looks fine.")] },
    careful,
    asCritic(review("pass"))
  ]),
  critic("wants one more thing", [
    careful,
    { when: { role: "critic", input: "^Review 1" }, play: [review("retry", [error("a comment is missing")])] },
    asCritic(review("pass"))
  ]),
  critic("remarks without asking", [careful, asCritic(review("pass", [{ severity: "info", title: "nice" }]))]),
  critic("finds five hundred things", [
    { when: { role: "critic", last_output: "more than 64" }, play: [review("pass")] },
    asCritic(
      review(
        "pass",
        Array.from({ length: 500 }, (_, nth) => ({ severity: "info", title: `thing ${nth}` }))
      )
    )
  ]),
  critic("contradicts itself", [
    { when: { role: "critic", last_output: "you found an error yourself" }, play: [review("pass")] },
    careful,
    asCritic(review("pass", [error("but it is wrong")]))
  ]),
  critic("never agrees", [asCritic(review("retry", [error("not good enough")]))]),
  critic("changes its mind", [
    { when: { role: "critic", input: "^Review [13579]\\." }, play: [review("retry", [error("too short")])] },
    asCritic(review("retry", [error("too long")]))
  ]),
  critic("says nothing", [asCritic(say("Hm."))]),
  critic("replans for ever", [
    { when: { role: "critic", input: "^Review 1" }, play: [review("replan", [error("wrong 1")])] },
    { when: { role: "critic", input: "^Review 2" }, play: [review("replan", [error("wrong 2")])] },
    { when: { role: "critic", input: "^Review 3" }, play: [review("replan", [error("wrong 3")])] },
    asCritic(review("replan", [error("wrong 4")]))
  ])
]

export const personalities = { planner: planners, worker: workers, critic: critics } as const
