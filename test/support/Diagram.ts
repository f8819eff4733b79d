/** Mermaid state diagrams, drawn from the tables so that they cannot disagree. */
import { agent } from "../../src/machine/table/Agent.ts"
import { attentionTable } from "../../src/machine/table/Attention.ts"
import { autonomy } from "../../src/machine/table/Autonomy.ts"
import { hook } from "../../src/machine/table/Hook.ts"
import { monitorTable } from "../../src/machine/table/Monitor.ts"
import { session } from "../../src/machine/table/Session.ts"
import { tool } from "../../src/machine/table/Tool.ts"
import { turn } from "../../src/machine/table/Turn.ts"

/** A machine with its types forgotten: from, command, to. */
export interface Drawing {
  readonly name: string
  readonly summary: string
  readonly initial: string
  readonly terminal: ReadonlyArray<string>
  readonly statuses: ReadonlyArray<string>
  readonly commands: ReadonlyArray<string>
  readonly edges: ReadonlyArray<{ readonly from: string; readonly command: string; readonly to: string }>
}

type LooseCell = "refuse" | string | { readonly to: string }
type LooseTable = Readonly<Record<string, Readonly<Record<string, LooseCell>>>>

const targetOf = (cell: LooseCell): string | undefined => {
  if (cell === "refuse") return undefined
  return typeof cell === "string" ? cell : cell.to
}

interface Subject {
  readonly name: string
  readonly initial: string
  readonly terminal: ReadonlyArray<string>
  readonly table: LooseTable
}

const drawingOf = (subject: Subject, summary: string): Drawing => {
  const statuses = Object.keys(subject.table)
  const edges = statuses.flatMap((from) =>
    Object.entries(subject.table[from]!).flatMap(([command, cell]) => {
      const to = targetOf(cell)
      return to === undefined ? [] : [{ from, command, to }]
    })
  )
  const { name, initial, terminal } = subject
  return { name, summary, initial, terminal, statuses, commands: Object.keys(subject.table[initial]!), edges }
}

const monitor: Subject = { name: "Monitor", initial: "initialized", terminal: ["exited"], table: monitorTable }
const attention: Subject = { name: "Attention", initial: "starting", terminal: [], table: attentionTable }

export const drawings: ReadonlyArray<Drawing> = [
  drawingOf(session as Subject, "The life of a conversation."),
  drawingOf(agent as Subject, "The life of one agent inside a conversation."),
  drawingOf(turn as Subject, "One turn of one agent, with hooks, retries and exactly one terminal rune."),
  drawingOf(tool as Subject, "One tool call, from the model's wish to its single result."),
  drawingOf(hook as Subject, "One post-tool hook of one batch."),
  drawingOf(autonomy as Subject, "From a goal to its proof."),
  drawingOf(monitor, "What an agent is doing, native or outside."),
  drawingOf(attention, "Whether a person is needed.")
]

/** Edges between the same two statuses share one arrow. */
const arrows = (drawing: Drawing): ReadonlyArray<string> => {
  const labels = new Map<string, Array<string>>()
  for (const { from, command, to } of drawing.edges) {
    const pair = `${from} --> ${to}`
    const known = labels.get(pair)
    if (known === undefined) labels.set(pair, [command])
    else known.push(command)
  }
  return [...labels].map(([pair, commands]) => `    ${pair} : ${commands.join(" / ")}`)
}

const tableRows = (drawing: Drawing): ReadonlyArray<string> => {
  const cells = new Map(drawing.edges.map(({ from, command, to }) => [`${from} ${command}`, to]))
  return drawing.commands.map(
    (command) =>
      `| ${command} | ${drawing.statuses.map((status) => cells.get(`${status} ${command}`) ?? "–").join(" | ")} |`
  )
}

/** The page of one machine under docs/machines. */
export const pageOf = (drawing: Drawing): string =>
  [
    `# ${drawing.name}`,
    "",
    `${drawing.summary} Generated from \`src/machine/${drawing.name}.ts\`; a dash is a refusal.`,
    "",
    "```mermaid",
    "stateDiagram-v2",
    `    [*] --> ${drawing.initial}`,
    ...arrows(drawing),
    ...drawing.terminal.map((status) => `    ${status} --> [*]`),
    "```",
    "",
    `| command | ${drawing.statuses.join(" | ")} |`,
    `|---|${drawing.statuses.map(() => "---|").join("")}`,
    ...tableRows(drawing),
    ""
  ].join("\n")
