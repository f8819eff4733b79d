// What the policy says about a program that the server starts for the agents of a conversation without a call of theirs,
// such as the evidence of a task: the same as about the same command of the tool `bash`. Where nothing may be changed it is
// for a person to say yes to exactly this command, whatever rules and permissions allow.
import { evaluate, rulingFor } from "./Evaluate.ts"
import type { Grant, PolicyMode, PolicyQuestion } from "./PolicyPort.ts"

export interface CommandPlace {
  /** Those of the conversation before those of the server. */
  readonly rules: ReadonlyArray<unknown>
  readonly workspace: string | undefined
  readonly nowMs: number
  readonly contained: boolean
  readonly mode: PolicyMode
  /** Given for calls of `bash` before. */
  readonly grants: ReadonlyArray<Grant>
}

export interface CommandRuling {
  readonly decision: "allow" | "ask" | "deny"
  readonly reason: string
}

const quoted = (word: string): string => (/^[\w./:=@%+,-]+$/u.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)

/** A line for the shell is what the tool gets as its command; anything else is a program with its words. */
const lineOf = (argv: ReadonlyArray<string>): string => {
  const [shell, flag, line, ...rest] = argv
  const isLine = (shell === "sh" || shell === "bash") && flag === "-c" && line !== undefined && rest.length === 0
  return isLine ? line : argv.map(quoted).join(" ")
}

export const commandRuling = (
  argv: ReadonlyArray<string>,
  { contained, grants, mode, nowMs, rules, workspace }: CommandPlace
): CommandRuling => {
  const question: PolicyQuestion = {
    tool_name: "bash",
    mutating: true,
    effect_class: "effect",
    provenance: "builtin",
    approval: "by_policy",
    contained,
    access: { command: lineOf(argv) },
    arguments_hash: "",
    mode,
    rules,
    grants,
    workspace,
    now_ms: nowMs
  }
  if (mode !== "read_only") {
    const { reason, verdict } = evaluate(question)
    return { decision: verdict, reason }
  }
  const { decision, reason } = rulingFor(question)
  return decision === "deny" ? { decision, reason } : { decision: "ask", reason: "the policy is read_only" }
}
