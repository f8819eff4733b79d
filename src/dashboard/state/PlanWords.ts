// Words of a plan: how a task is proved, and which state it is in.
import type { PlanItem } from "../../client/Client.ts"
import { visible } from "../../present/VisibleText.ts"

export type PlanTask = PlanItem["tasks"][number]
type EvidenceSpec = NonNullable<PlanTask["task"]["evidence"]>[number]

/** A word of a command as a shell would need it, so that its borders are seen. */
const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${visible(word).replaceAll("'", "'\\''")}'`

export const evidenceText = (spec: EvidenceSpec): string => {
  if (spec.type === "command") {
    const expected = spec.expected_exit === 0 ? "" : `  → exit ${spec.expected_exit}`
    return `${spec.command.map(quoted).join(" ")}${expected}`
  }
  return `${spec.type === "file" ? "file exists" : "report"}: ${visible(spec.path)}`
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
