// Scenarios that pursue goals with the real tools: a plan with evidence, workers that write files, a critic. Each shows one
// way a goal can go. `goal` plays all of them: the goal's own text chooses, by a word in square brackets, and without one
// the work simply succeeds. What is played depends on the request alone, so a crash changes nothing.
import type { Action, Reply, Scenario, When } from "./Scenario.ts"

type Replies = ReadonlyArray<Reply>

const pace = { chunk_chars: 12, delay_ms: 8 }
const say = (text: string): Action => ({ text, ...pace })
const use = (tool: string | readonly [string, ...Array<string>], args: Readonly<Record<string, unknown>>): Action => ({
  tool: typeof tool === "string" ? tool : [...tool],
  arguments: args
})
const write = (path: string, content: string): Action => use("write_file", { path, content })

interface TaskOptions {
  readonly after?: ReadonlyArray<string>
  readonly text?: string
  readonly priority?: string
}

/** A task that is shown to be done by a file with a word in it. */
const task = (id: string, file: string, { after = [], priority = "medium", text }: TaskOptions = {}) => ({
  id,
  title: `Write ${file}`,
  instructions: `Write the file ${file}.`,
  depends_on: after,
  priority,
  evidence: [
    { type: "file", path: file },
    ...(text === undefined ? [] : [{ type: "command", command: ["grep", "-q", text, file], expected_exit: 0 }])
  ]
})

const plan = (when: When, summary: string, tasks: ReadonlyArray<unknown>): Reply => ({
  when: { role: "orchestrator", ...when },
  play: [say(`${summary}\n`), use("submit_plan", { summary, tasks })]
})

/** Looks around first, as an orchestrator should. */
const look: Reply = {
  when: { role: "orchestrator", turn: 1, step: 1 },
  play: [say("First, what is here?\n"), use(["list_files", "list_directory", "read_file"], { path: "." })]
}

/** The worker of a task writes its file, then says so. */
const worker = (id: string, ...actions: ReadonlyArray<Action>): Replies => [
  { when: { role: "worker", input: `^Task ${id}:`, step: 1 }, play: [say(`On it: ${id}.\n`), ...actions] },
  { when: { role: "worker", input: `^Task ${id}:` }, play: [say(`Task ${id} is done.`)] }
]

const verdict = (when: When, value: string, findings: ReadonlyArray<unknown> = []): Reply => ({
  when: { role: "critic", ...when },
  play: [say("I looked at the work.\n"), use("submit_review", { verdict: value, findings })]
})

const passes: Reply = verdict({}, "pass")

const finding = (title: string, file: string, more: Readonly<Record<string, unknown>> = {}) => ({
  severity: "error",
  category: "correctness",
  title,
  file,
  ...more
})

const letterTasks = [
  task("greeting", "goal/greeting.txt", { text: "Dear" }),
  task("body", "goal/body.txt", { text: "log" }),
  task("letter", "goal/letter.txt", { after: ["greeting", "body"], text: "Dear", priority: "high" })
]

const letterWorkers: Replies = [
  ...worker("greeting", write("goal/greeting.txt", "Dear reader,\n")),
  ...worker("body", write("goal/body.txt", "every step of this is a rune in a log.\n")),
  ...worker("letter", write("goal/letter.txt", "Dear reader,\nevery step of this is a rune in a log.\n"))
]

const success: Replies = [
  look,
  plan({ turn: 1 }, "Two parts side by side, then the letter made of them.", letterTasks),
  ...letterWorkers,
  {
    when: { role: "critic", step: 1 },
    play: [say("Let me read the letter myself.\n"), use("read_file", { path: "goal/letter.txt" })]
  },
  verdict({ last_output: "Dear" }, "pass"),
  verdict({}, "retry", [finding("The letter has no greeting", "goal/letter.txt", { task_id: "letter" })])
]

/** A person rejects the first plan; the second has what was missing. */
const rejected: Replies = [
  plan({ input: "was rejected" }, "Revised: the letter is checked, too.", letterTasks),
  plan({ turn: 1 }, "One task does it all.", [task("letter", "goal/letter.txt")]),
  ...letterWorkers,
  passes
]

/** The work passes its weak evidence and not the critic; what the critic found is fixed. */
const critique: Replies = [
  plan({}, "One file.", [task("letter", "goal/letter.txt")]),
  ...worker("letter", write("goal/letter.txt", "Dear raeder,\n")),
  ...worker("fix-1-1", write("goal/letter.txt", "Dear reader,\n")),
  verdict({ input: "^Review 1" }, "retry", [
    finding("The reader is misspelt", "goal/letter.txt", { line: 1, suggested_fix: "reader", task_id: "letter" })
  ]),
  passes
]

/** The worker says that it is done and has done nothing; the second one does it. */
const liar: Replies = [
  plan({ turn: 1 }, "One file.", [task("letter", "goal/letter.txt", { text: "Dear" })]),
  {
    when: { role: "worker", input: "tried before", step: 1 },
    play: [say("This time for real.\n"), write("goal/letter.txt", "Dear reader,\n")]
  },
  { when: { role: "worker" }, play: [say("I have written the letter. All done!")] },
  passes
]

const replan: Replies = [
  plan({ input: "does not lead to the goal" }, "A better plan.", [task("letter", "goal/letter.txt", { text: "Dear" })]),
  plan({ turn: 1 }, "A poor plan.", [task("note", "goal/note.txt")]),
  ...worker("note", write("goal/note.txt", "a note\n")),
  ...worker("letter", write("goal/letter.txt", "Dear reader,\n")),
  verdict({ input: "^Review 1" }, "replan", [finding("A note is no letter", "goal/note.txt")]),
  passes
]

const blockedTasks = [task("greeting", "goal/greeting.txt"), task("letter", "goal/letter.txt", { after: ["greeting"] })]
const idle: Reply = { when: { role: "worker", input: "^Task greeting:" }, play: [say("I could not do it.")] }

/** A task fails for good and holds up the next; the orchestrator replaces it. */
const blocked: Replies = [
  {
    when: { role: "orchestrator", input: "Nothing that is left can run", step: 1 },
    play: [
      say("The greeting has to be done differently.\n"),
      use("update_plan", {
        change: [{ ...task("greeting", "goal/greeting.txt"), instructions: "Write goal/greeting.txt, by hand." }]
      })
    ]
  },
  { when: { role: "orchestrator", input: "Nothing that is left can run" }, play: [say("The plan is changed.")] },
  plan({ turn: 1 }, "A greeting, then a letter.", blockedTasks),
  ...worker("greeting", write("goal/greeting.txt", "Dear reader,\n")).map((reply) => ({
    ...reply,
    when: { ...reply.when, input: "^Task greeting:[\\s\\S]*by hand" }
  })),
  idle,
  ...worker("letter", write("goal/letter.txt", "Dear reader,\n")),
  passes
]

/** The same, and nobody knows a way out. */
const stuck: Replies = [
  {
    when: { role: "orchestrator", input: "Nothing that is left can run" },
    play: [use("give_up", { reason: "there is no greeting for this reader" })]
  },
  plan({ turn: 1 }, "A greeting, then a letter.", blockedTasks),
  idle
]

/** Every answer of a worker costs a lot. */
const expensive: Replies = [
  plan({ turn: 1 }, "Two parts side by side, then the letter made of them.", letterTasks),
  ...letterWorkers.map((reply) => ({
    ...reply,
    play: [...reply.play, { usage: { input_tokens: 40_000, output_tokens: 10_000 } }]
  })),
  passes
]

/** A worker that never ends: for those who want to cancel. */
const endless: Replies = [
  plan({ turn: 1 }, "Two parts side by side, then the letter made of them.", letterTasks),
  { when: { role: "worker" }, play: [say("Thinking about it …"), { stall: true }] }
]

/** What one review wants the next one does not. */
const oscillation: Replies = [
  plan({ turn: 1 }, "One file.", [task("letter", "goal/letter.txt")]),
  ...worker("letter", write("goal/letter.txt", "Dear reader,\n")),
  ...worker("fix-(1|3|5|7|9)-1", write("goal/letter.txt", "Hello reader,\n")),
  ...worker("fix-(2|4|6|8|10)-1", write("goal/letter.txt", "Dear reader,\n")),
  verdict({ input: "^Review (1|3|5|7|9)\\b" }, "retry", [finding("Dear is stiff: say Hello", "goal/letter.txt")]),
  verdict({}, "retry", [finding("Hello is too casual: say Dear", "goal/letter.txt")])
]

/** A worker that asks the same thing for ever. */
const repetition: Replies = [
  plan({ turn: 1 }, "One file.", [task("letter", "goal/letter.txt")]),
  { when: { role: "worker" }, play: [use(["list_files", "list_directory", "read_file"], { path: "." })] }
]

/** An orchestrator that talks and never submits a plan. */
const silence: Replies = [{ when: { role: "orchestrator" }, play: [say("I am thinking about a plan.")] }]

const ways = {
  success,
  rejected,
  critique,
  liar,
  replan,
  blocked,
  stuck,
  expensive,
  endless,
  oscillation,
  repetition,
  silence
} as const

type Way = keyof typeof ways

/** The pattern of both: a text that has the word and looks like the other pattern. */
const withWord = (way: Way, { input, ...when }: When = {}): When => ({
  ...when,
  input: `^(?=[\\s\\S]*\\[${way}\\])${input === undefined ? "" : `(?=${lookedFor(input)})`}`
})

const lookedFor = (pattern: string): string => (pattern.startsWith("^") ? pattern.slice(1) : `[\\s\\S]*${pattern}`)

const chosenBy = (way: Way): Replies => ways[way].map((reply) => ({ ...reply, when: withWord(way, reply.when) }))

/** All ways in one: a word such as `[replan]` in the goal chooses, success needs none. */
export const goalReplies: Replies = [
  ...(Object.keys(ways) as ReadonlyArray<Way>).filter((way) => way !== "success").flatMap(chosenBy),
  ...success
]

const scenario = (name: string, replies: Replies): Scenario => ({
  name,
  replies: replies as unknown as Scenario["replies"]
})

/** `goal`, and `goal-<way>` for each way. */
export const goalScenarios: Readonly<Record<string, Scenario>> = Object.fromEntries([
  ["goal", scenario("goal", goalReplies)],
  ...Object.entries(ways).map(([way, replies]) => [`goal-${way}`, scenario(`goal-${way}`, replies)])
])
