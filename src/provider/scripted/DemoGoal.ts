// The goal that `echs demo` pursues: two workers side by side, a third that puts their work together with a command that a
// person allows, a critic that finds something, its repair, and the proof. It works on the café's
// directory that the demo makes.
import type { Action, Reply, Scenario } from "./Scenario.ts"

const pace = { chunk_chars: 7, delay_ms: 16 }
const say = (text: string): Action => ({ text, ...pace })
const use = (tool: string, args: Readonly<Record<string, unknown>>): Action => ({ tool, arguments: args })
const write = (path: string, content: string): Action => use("write_file", { path, content })

const starters = "Tomato soup      6\nGreen salad      5\n"
const mains = "Mushroom risotto 14\nGrilled trout    17\n"
const assemble =
  "{ echo 'Manu of the day'; cat menu/starters.txt menu/mains.txt; } > menu/menu.txt && sh check.sh menu/menu.txt"

const tasks = [
  {
    id: "starters",
    title: "Write the starters",
    instructions: "Write menu/starters.txt: two starters, a line each, with their prices.",
    depends_on: [],
    priority: "medium",
    evidence: [{ type: "command", command: ["grep", "-c", "[0-9]$", "menu/starters.txt"], expected_exit: 0 }]
  },
  {
    id: "mains",
    title: "Write the mains",
    instructions: "Write menu/mains.txt: two mains, a line each, with their prices.",
    depends_on: [],
    priority: "medium",
    evidence: [{ type: "command", command: ["grep", "-c", "[0-9]$", "menu/mains.txt"], expected_exit: 0 }]
  },
  {
    id: "menu",
    title: "Put the menu together",
    instructions: "Make menu/menu.txt of the two parts, with a heading, and run check.sh on it.",
    depends_on: ["starters", "mains"],
    priority: "high",
    evidence: [{ type: "command", command: ["sh", "check.sh", "menu/menu.txt"], expected_exit: 0 }]
  }
]

const orchestrator: ReadonlyArray<Reply> = [
  {
    when: { role: "orchestrator", step: 1 },
    play: [say("What is here, and what does the check want?\n"), use("read_file", { path: "check.sh" })]
  },
  {
    when: { role: "orchestrator" },
    play: [
      say("Two parts that do not need each other, then the whole.\n"),
      use("submit_plan", { summary: "Starters and mains side by side, then the menu.", tasks })
    ]
  }
]

const workers: ReadonlyArray<Reply> = [
  {
    when: { role: "worker", input: "^Task starters:", step: 1 },
    play: [
      say("Something warm and something fresh, neither of them dear: a soup of late tomatoes and a green salad.\n"),
      write("menu/starters.txt", starters)
    ]
  },
  {
    when: { role: "worker", input: "^Task mains:", step: 1 },
    play: [
      say("One dish for those who eat no meat, one for those who like fish: a risotto with mushrooms and a trout.\n"),
      write("menu/mains.txt", mains)
    ]
  },
  {
    when: { role: "worker", input: "^Task menu:", step: 1 },
    play: [say("Both parts are there. Now the whole menu, and the check.\n"), use("bash", { command: assemble })]
  },
  {
    when: { role: "worker", input: "^Task menu:", last_output: "denied|refused|not allowed|not known" },
    play: [
      say("Then without a command: I write the file myself.\n"),
      write("menu/menu.txt", `Manu of the day\n${starters}${mains}`)
    ]
  },
  {
    when: { role: "worker", input: "^Task fix-", step: 1 },
    play: [
      say("A slip of the pen in the heading.\n"),
      use("edit_file", { path: "menu/menu.txt", old_text: "Manu of the day", new_text: "Menu of the day" })
    ]
  },
  { when: { role: "worker", input: "^Task menu:" }, play: [say("The menu is put together.")] },
  { when: { role: "worker" }, play: [say("Written.")] }
]

const critic: ReadonlyArray<Reply> = [
  {
    when: { role: "critic", step: 1 },
    play: [say("I read the menu myself.\n"), use("read_file", { path: "menu/menu.txt" })]
  },
  {
    when: { role: "critic", last_output: "Manu" },
    play: [
      use("submit_review", {
        verdict: "retry",
        findings: [
          {
            severity: "error",
            category: "spelling",
            title: "The heading says Manu",
            file: "menu/menu.txt",
            line: 1,
            suggested_fix: "Menu of the day"
          }
        ]
      })
    ]
  },
  {
    when: { role: "critic" },
    play: [say("Complete, and spelled right.\n"), use("submit_review", { verdict: "pass", findings: [] })]
  }
]

export const demoGoal: Scenario = {
  name: "demo-goal",
  description: "The menu of a café: planned, written side by side, reviewed, mended and proved",
  replies: [...orchestrator, ...workers, ...critic] as unknown as Scenario["replies"]
}
