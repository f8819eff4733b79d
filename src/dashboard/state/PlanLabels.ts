// Words of a plan: how a task is proved, and which state it is in.
import type { PlanItem } from "../../client/Client.ts"
import { visible } from "../../present/VisibleText.ts"

export type PlanTask = PlanItem["tasks"][number]
type EvidenceSpec = NonNullable<PlanTask["task"]["evidence"]>[number]

/** A word of a command as a shell would need it, so that its borders are seen. */
const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${visible(word).replaceAll("'", "'\\''")}'`

const line = (command: ReadonlyArray<string>): string => command.map(quoted).join(" ")

export const evidenceText = (spec: EvidenceSpec): string => {
  switch (spec.type) {
    case "command":
      return `${line(spec.command)}${spec.expected_exit === 0 ? "" : `  → exit ${spec.expected_exit}`}`
    case "tests":
      return `${line(spec.command)}  → ${spec.min_tests ?? 1} or more tests pass`
    case "delta":
      return `${line(spec.command)}  → ${visible(spec.name)} may only ${spec.may}`
    case "http":
      return `${line(spec.start)}  → ${visible(spec.url)} answers ${spec.status ?? 200}`
    case "json": {
      const where = spec.command === undefined ? visible(spec.path ?? "") : line(spec.command)
      return `${where}  → ${visible(spec.pointer)} is ${visible(JSON.stringify(spec.equals))}`
    }
    case "diff":
      return `changes: ${[spec.max_files === undefined ? "" : `at most ${spec.max_files} files`, spec.max_lines === undefined ? "" : `at most ${spec.max_lines} lines`, spec.only === undefined ? "" : `only ${spec.only.map(visible).join(", ")}`].filter((part) => part !== "").join(", ")}`
    case "unchanged":
      return `unchanged: ${spec.paths.map(visible).join(", ")}`
    default:
      return `${spec.type === "file" ? "file exists" : "report"}: ${visible(spec.path)}`
  }
}

type Tone = "running" | "waiting" | "person" | "done" | "failed" | "paused" | "closed" | "idle"

export const taskTones: Readonly<Record<PlanTask["status"], Tone>> = {
  pending: "idle",
  assigned: "waiting",
  running: "running",
  completed: "done",
  failed: "failed",
  cancelled: "closed"
}

export const planTones: Readonly<Record<PlanItem["status"], Tone>> = {
  goal_received: "waiting",
  planning: "running",
  executing: "running",
  blocked: "person",
  reviewing: "running",
  goal_met: "done",
  stopped: "closed"
}
