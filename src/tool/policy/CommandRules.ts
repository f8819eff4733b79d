// What the rules of a policy say about a program that the server starts for the agents of a conversation without a call
// of theirs, such as the evidence of a task: the same as about the same command of the tool `bash`. Only rules count
// here; who may start it otherwise is for whoever starts it.
import { type Ruling, rulingFor } from "./Evaluate.ts"

export interface CommandPlace {
  /** Those of the conversation before those of the server. */
  readonly rules: ReadonlyArray<unknown>
  readonly workspace: string | undefined
  readonly nowMs: number
  readonly contained: boolean
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
  { contained, nowMs, rules, workspace }: CommandPlace
): Pick<Ruling, "decision" | "reason"> => {
  const { decision, reason } = rulingFor({
    tool_name: "bash",
    mutating: true,
    effect_class: "effect",
    provenance: "builtin",
    approval: "by_policy",
    contained,
    access: { command: lineOf(argv) },
    arguments_hash: "",
    mode: "auto",
    rules,
    grants: [],
    workspace,
    now_ms: nowMs
  })
  return { decision, reason }
}
