// Scenarios that come with the program. `demo` is what a person sees who has no key yet: it looks around, writes a
// file, runs a command and sums up. `echo` says the input back, at once.
import { demoGoal } from "./DemoGoal.ts"
import { goalReplies, goalScenarios } from "./Goals.ts"
import type { Reply, Scenario } from "./Scenario.ts"

const pace = { chunk_chars: 6, delay_ms: 18 }

const note = `# A note from your first agent

This file was written by a tool call. The call, the approval it may have needed and its result
are runes in the log of this conversation: nothing that happened here can get lost.

Try next: \`echs tail\` to see every rune, or stop the server in the middle of a turn and start
it again. The turn goes on by itself.
`

const firstTurn: Scenario["replies"] = [
  {
    when: { turn: 1, step: 1 },
    play: [
      {
        reasoning: "No model key is configured, so this is the built-in demo. First see what is in the workspace.",
        ...pace
      },
      {
        text: "I will show what a turn looks like: look around, write a note, check it. First, what is here?\n",
        ...pace
      },
      { tool: ["list_files", "read_file"], arguments: { path: "." } }
    ]
  },
  {
    when: { turn: 1, step: 2 },
    play: [
      { reasoning: "Now leave something behind that a person can open.", ...pace },
      { text: "Now I will write a short note into `echs-demo.md`.\n", ...pace },
      { tool: "write_file", arguments: { path: "echs-demo.md", content: note } }
    ]
  },
  {
    when: { turn: 1, step: 3, last_output: "denied|refused|not allowed" },
    play: [
      { text: "You did not want that file, so I leave the workspace as it is. ", ...pace },
      { text: "The refusal is on record: it is a rune too, with who decided and when.", ...pace }
    ]
  },
  {
    when: { turn: 1, step: 3 },
    play: [
      { text: "Written. Let me check it with a command.\n", ...pace },
      { tool: ["bash", "run_command"], arguments: { command: "wc -l -w echs-demo.md" } }
    ]
  },
  {
    when: { turn: 1 },
    play: [
      { text: "Done. The check said:\n\n    {{output}}\n\n", ...pace },
      { text: "That was one turn with three tool calls: a read, a write and a command. ", ...pace },
      { text: "Set OPENAI_API_KEY or ANTHROPIC_API_KEY to have a real model do this.", ...pace }
    ]
  }
]

const laterTurns: ReadonlyArray<Reply> = [
  {
    when: { step: 1 },
    play: [
      { reasoning: "A follow-up. Look at the note again and answer.", ...pace },
      { text: "You said: {{input}}\n\nLet me look at the note again.\n", ...pace },
      { tool: "read_file", arguments: { path: "echs-demo.md" } }
    ]
  },
  {
    play: [
      { text: "It begins like this:\n\n    {{output}}\n\n", ...pace },
      { text: "This is the scripted demo, so I cannot do more than that. With a model key I could.", ...pace }
    ]
  }
]

export const demo: Scenario = {
  name: "demo",
  description: "A turn with three tool calls, for those who have no key yet",
  replies: [...goalReplies, ...firstTurn, ...laterTurns] as unknown as Scenario["replies"]
}

export const echo: Scenario = {
  name: "echo",
  description: "Says the input back",
  replies: [{ play: [{ text: "{{input}}" }] }]
}

export const builtinScenarios: { readonly [name: string]: Scenario } = {
  demo,
  echo,
  "demo-goal": demoGoal,
  ...goalScenarios
}
