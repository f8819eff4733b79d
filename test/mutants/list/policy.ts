// Lies in what decides whether a call may run, and in what a person's answer is bound to.
import type { Mutant } from "../Mutant.ts"

const evaluate = "src/policy/Evaluate.ts"
const policyTests = ["test/policy/Evaluate.test.ts"]

export const policyMutants: ReadonlyArray<Mutant> = [
  {
    name: "lets a deny rule pass",
    file: evaluate,
    find: 'if (ruling.decision === "deny") return { verdict: "deny", reason: ruling.reason }',
    replace: "",
    tests: policyTests
  },
  {
    name: "changes things in read_only",
    file: evaluate,
    find: 'if (mode === "read_only" && changes) {',
    replace: "if (false) {",
    tests: policyTests
  },
  {
    name: "takes a rule that cannot be read for no rule",
    file: evaluate,
    find: 'if (typeof rule === "string") {\n',
    replace: 'if (typeof rule === "string") continue\n    if (typeof rule === "string") {\n',
    tests: policyTests
  },
  {
    name: "honors a grant that has expired",
    file: evaluate,
    find: "if (!isValid || (grant.expires_ms !== null && grant.expires_ms <= nowMs)) return false",
    replace: "if (!isValid) return false",
    tests: policyTests
  },
  {
    name: "takes a grant of one tool for another",
    file: evaluate,
    find: 'const isValid = grant.scope !== "once" && grant.tool_name === name',
    replace: 'const isValid = grant.scope !== "once" && name !== ""',
    tests: policyTests
  },
  {
    name: "runs what nothing contains without asking",
    file: evaluate,
    find: "if (changes && lacksSandbox) return uncontained(facts, ruling)",
    replace: "",
    tests: policyTests
  },
  {
    name: "lets a rule that allows cover a command that is not understood",
    file: "src/policy/Match.ts",
    find: 'if (rule.decision === "allow" && !isCertain) return "no"',
    replace: 'if (rule.decision === "allow" && !isCertain) return "yes"',
    tests: policyTests
  },
  {
    name: "lets a rule without network cover a call that wants it",
    file: "src/policy/Match.ts",
    find: 'if (rule.decision === "allow" && facts.wantsNetwork && rule.network !== true) return "no"',
    replace: "",
    tests: policyTests
  },
  {
    name: "takes a name that begins like a directory for one inside it",
    file: "src/policy/Glob.ts",
    find: 'path.startsWith(directory.endsWith("/") ? directory :',
    replace: 'path.startsWith(directory !== "" ? directory :',
    tests: policyTests
  },
  {
    name: "runs changed arguments that the policy denies",
    file: "src/conversation/Approvals.ts",
    find: 'if (verdict._tag === "Deny") {',
    replace: "if (false) {",
    tests: ["test/conversation/Approvals.test.ts"]
  },
  {
    name: "answers questions that the new permission does not cover",
    file: "src/conversation/Approvals.ts",
    find: "if (!(await this.isAllowed(state, call))) return false",
    replace: "",
    tests: ["test/conversation/Approvals.test.ts"]
  },
  {
    name: "runs a call whose remembered verdict is no",
    file: "src/tool/ToolRouter.ts",
    find: 'if (verdict.verdict === "deny") return { status: "error", error: errorInfo("tool_denied", verdict.reason) }',
    replace: "",
    tests: ["test/tool/ToolRouter.test.ts"]
  },
  {
    name: "runs a call although a hook says no",
    file: "src/tool/ToolRouter.ts",
    find: 'if (objection._tag === "Deny") return { verdict: "deny", reason: objection.reason }',
    replace: 'if (objection._tag === "Deny") return policy',
    tests: ["test/tool/ToolRouter.test.ts"]
  }
]
