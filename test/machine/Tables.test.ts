/**
 * Goal: every status × command cell of every table does what it says. An accepted
 * cell lands where the fold of its own runes lands; a refused one writes nothing.
 */

import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { attentionStep, attentionTable } from "#src/machine/table/Attention.ts"
import { monitorStep, monitorTable } from "#src/machine/table/Monitor.ts"
import { commandsOf, decideIn, statusesOf } from "#src/machine/table/Table.ts"
import { decode, encode, type Rune, type RuneDraft, stamp } from "#src/rune/Rune.ts"
import { subjects } from "../support/machineSamples.ts"
import { exampleRune } from "../support/runeExamples.ts"

const stamped = (draft: RuneDraft): Rune => stamp(draft, exampleRune("session.created"))

/** How each thing's life begins: the rune that brings it into its initial status. */
const births = {
  Session: "session.created",
  Agent: "agent.spawning",
  Tool: "tool.call",
  Autonomy: "plan.goal_received"
} as const

describe.each(subjects)("$machine.name", ({ machine, samples, lands }) => {
  const statuses = statusesOf(machine)
  const commands = commandsOf(machine)
  const cells = statuses.flatMap((status) => commands.map((command) => [status, command] as const))

  it("has a sample for every command and a cell for every pair", () => {
    expect(Object.keys(samples).sort()).toEqual([...commands].sort())
    for (const status of statuses) expect(Object.keys(machine.table[status]!).sort()).toEqual([...commands].sort())
    expect(cells).toHaveLength(statuses.length * commands.length)
  })

  it.each(cells)("%s × %s", (status, tag) => {
    const cell = machine.table[status]![tag]!
    const decision = decideIn(machine, status, samples[tag]!)
    if (cell === "refuse") {
      expect(decision).toEqual({ _tag: "Refused", machine: machine.name, status, command: tag })
      return
    }
    if (decision._tag !== "Accepted") throw new Error("refused")
    expect(decision.to).toBe(cell.to)
    const runes = decision.runes.map(stamped)
    for (const rune of runes) expect(Result.getOrThrow(decode(encode(rune)))).toEqual(rune)
    const landed = runes.reduce(lands, status)
    // A step without runes is internal: the thing is settled without a trace of its own.
    if (runes.length > 0) expect(landed).toBe(decision.to)
    else expect([tag, landed]).toEqual([tag === "Finalise" ? "Finalise" : "AdmitTurn", status])
  })

  it("ends for good: what is over writes no rune", () => {
    for (const status of machine.terminal) {
      for (const tag of commands) {
        const decision = decideIn(machine, status, samples[tag]!)
        if (status === "archived" && tag === "Restore") continue
        if (decision._tag === "Accepted") expect(decision.runes).toEqual([])
      }
    }
  })

  it("can be reached in every status, from its beginning", () => {
    const reached = new Set<string>([machine.initial])
    for (let size = 0; size < reached.size; ) {
      size = reached.size
      for (const status of reached) {
        for (const cell of Object.values(machine.table[status]!)) if (cell !== "refuse") reached.add(cell.to)
      }
    }
    expect([...reached].sort()).toEqual([...statuses].sort())
  })

  it("is born in its initial status and unmoved by runes that are not its own", () => {
    const birth = births[machine.name as keyof typeof births]
    if (birth !== undefined) expect(lands("", exampleRune(birth))).toBe(machine.initial)
    for (const status of statuses) expect(lands(status, exampleRune("system.error"))).toBe(status)
  })
})

describe("Monitor", () => {
  const cells = Object.entries(monitorTable).flatMap(([status, row]) =>
    Object.entries(row).map(([signal, to]) => [status, signal, to] as const)
  )

  it.each(cells)("%s × %s → %s", (status, signal, to) => {
    const next = monitorStep(status as keyof typeof monitorTable, signal as never)
    expect(next).toBe(to === "refuse" ? status : to)
  })

  it("refuses everything once the agent has exited", () => {
    expect(new Set(Object.values(monitorTable.exited))).toEqual(new Set(["refuse"]))
  })
})

describe("Attention", () => {
  const cells = Object.entries(attentionTable).flatMap(([status, row]) =>
    Object.entries(row).map(([signal, to]) => [status, signal, to] as const)
  )

  it.each(cells)("%s × %s → %s", (status, signal, to) => {
    const next = attentionStep(status as keyof typeof attentionTable, signal as never)
    expect(next).toBe(to === "refuse" ? status : to)
  })

  it("wakes from closed by a new session only", () => {
    const awake = Object.entries(attentionTable.closed).filter(([, to]) => to !== "refuse")
    expect(awake).toEqual([["session_start", "running"]])
  })
})
