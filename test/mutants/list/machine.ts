// Lies in the guards of the pure machines: approvals, single starts, one turn at a time, evidence, recovery.
import type { Mutant } from "../Mutant.ts"

const test = (name: string): string => `test/machine/${name}.test.ts`
const tool = "src/machine/decide/tool.ts"

export const machineMutants: ReadonlyArray<Mutant> = [
  {
    name: "approves arguments that are not those that were shown",
    file: tool,
    find: "if (command.arguments_hash !== undefined && command.arguments_hash !== call.arguments_hash) {",
    replace: "if (false) {",
    tests: [test("Tools")]
  },
  {
    name: "takes an approval of a question that has expired",
    file: tool,
    find: "if (expiresMs !== null && sheet.atMs >= expiresMs) {",
    replace: "if (false) {",
    tests: [test("Tools")]
  },
  {
    name: "takes a longer permission than the question offers",
    file: tool,
    find: 'if (scope === "once" || choices.includes(scope)) return undefined',
    replace: "if (choices.length > 0) return undefined",
    tests: [test("Tools"), test("Corners")]
  },
  {
    name: "starts an effect a second time",
    file: tool,
    find: "const isSpent = (call: CallState): boolean => call.attempt > 0 &&",
    replace: "const isSpent = (call: CallState): boolean => call.attempt > 9 &&",
    tests: [test("Tools"), test("Corners")]
  },
  {
    name: "restarts an effect call after its worker crashed",
    file: tool,
    find: 'call.effect_class !== "effect" &&\n',
    replace: "",
    tests: [test("Tools"), test("Corners"), test("table/Turn")]
  },
  {
    name: "retries a crashed call more often than the limit",
    file: tool,
    find: "call.attempt <= effectiveLimits(sheet.state.session.config).maxToolRetries &&",
    replace: "call.attempt <= effectiveLimits(sheet.state.session.config).maxToolRetries + 1 &&",
    tests: [test("Tools"), test("table/Turn")]
  },
  {
    name: "starts a tool while the session is suspended",
    file: tool,
    find: 'if (status === "suspended") {\n    sheet.refuse("invalid_state", "Session is suspended: nothing starts"',
    replace: 'if (false) {\n    sheet.refuse("invalid_state", "Session is suspended: nothing starts"',
    tests: [test("Tools"), test("table/Session")]
  },
  {
    name: "starts a call that waits for its retry",
    file: tool,
    find: "if (waitsForRetry(sheet, call) !== undefined) {",
    replace: "if (false) {",
    tests: [test("Tools"), test("table/Turn")]
  },
  {
    name: "takes progress of a call that has not started",
    file: tool,
    find: 'if (call.status !== "executing" || call.attempt > 0) return undefined',
    replace: "if (call.attempt >= 0) return undefined",
    tests: [test("Tools")]
  },
  {
    name: "takes a decision of a call that was decided",
    file: tool,
    find: "const decided = sheet.state.decisions.findLast((one) => one.call_id === callId)",
    replace: "const decided = sheet.state.decisions.findLast(() => false)",
    tests: [test("Tools"), test("Corners")]
  },
  {
    name: "takes arguments nested beyond the limit",
    file: tool,
    find: "if (!isDeeperThan(value, limits.argumentsDepthMax)) return undefined",
    replace: "if (isObject) return undefined",
    tests: [test("Tools"), test("Corners")]
  },
  {
    name: "runs effects again after a crash of the server",
    file: "src/machine/work/Recovery.ts",
    find: "call.attempt > 0 &&",
    replace: "call.attempt > 9 &&",
    tests: [test("work/Recovery")]
  },
  {
    name: "leaves a question of an MCP server in the inbox after a crash of the server",
    file: "src/machine/work/Recovery.ts",
    find: "...endAsked(sheet), ",
    replace: "",
    tests: [test("view/Questions")]
  },
  {
    name: "leaves a question of an MCP server open when its call ends",
    file: "src/machine/decide/Decide.ts",
    find: "  endQuestions(sheet)\n",
    replace: "",
    tests: [test("view/Questions")]
  },
  {
    name: "runs effect hooks again after a crash of the server",
    file: "src/machine/work/Recovery.ts",
    find: 'hook.status === "running" && hook.effect_class === "effect"',
    replace: 'hook.status === "queued" && hook.effect_class === "effect"',
    tests: [test("work/Recovery")]
  },
  {
    name: "takes a goal as met without any evidence",
    file: "src/machine/decide/plan.ts",
    find: "step.met.payload.evidence.length > 0 && ",
    replace: "",
    tests: [test("Plan")]
  },
  {
    name: "takes a task as done whose evidence failed",
    file: "src/machine/decide/plan.ts",
    find: 'step._tag !== "CompleteTask" || step.payload.evidence.every((one) => one.passed)',
    replace: 'step._tag !== "CompleteTask" || step.payload.evidence.every((one) => one !== undefined)',
    tests: [test("Plan")]
  },
  {
    name: "starts a task before what it depends on",
    file: "src/machine/decide/plan.ts",
    find: "if (waitsFor.length > 0) {",
    replace: "if (false) {",
    tests: [test("Plan")]
  },
  {
    name: "spawns more agents than may live",
    file: "src/machine/decide/agent.ts",
    find: "if (aliveAgents(state).length >= limits.agentsAliveMax) {",
    replace: "if (false) {",
    tests: [test("Corners"), test("State"), test("table/Session")]
  },
  {
    name: "finishes a batch whose calls are still open",
    file: "src/machine/decide/batch.ts",
    find: "if (batch.some(isOpen)) {",
    replace: "if (false) {",
    tests: [test("table/Turn"), test("Tools")]
  },
  {
    name: "runs the hooks of a batch out of order",
    file: "src/machine/decide/batch.ts",
    find: "if (nextHook(sheet.state) !== hook) {",
    replace: 'if (turn.status !== "hooks_running") {',
    tests: [test("table/Turn"), test("Corners")]
  },
  {
    name: "asks the model while the session is suspended",
    file: "src/machine/decide/model.ts",
    find: 'if (status === "suspended") {',
    replace: "if (false) {",
    tests: [test("table/Turn"), test("table/Session"), test("Corners")]
  },
  {
    name: "asks the model more often than a turn may",
    file: "src/machine/decide/model.ts",
    find: "if (turn.model_calls >= limits.modelCallsPerTurnMax) {",
    replace: "if (false) {",
    tests: [test("table/Turn"), test("Corners")]
  },
  {
    name: "queues more messages than the limit",
    file: "src/machine/decide/message.ts",
    find: "if (agent.queue.length >= limits.queuedMessagesMax) {",
    replace: "if (false) {",
    tests: [test("Corners"), test("table/Turn"), test("table/Session")]
  },
  {
    name: "lets an answer that is interrupted cost nothing",
    file: "src/machine/decide/Ending.ts",
    find: "usageOf(turn.usage, options.usage ?? settlementOf(turn.request))",
    replace: "usageOf(turn.usage, options.usage)",
    tests: [test("decide/Settlement")]
  },
  {
    name: "forgets what a request cost that the server's end cut off",
    file: "src/machine/evolve/turn.ts",
    find: "count(state, agent, turn, cut.usage)",
    replace: "turn.usage.estimated = true",
    tests: [test("decide/Settlement")]
  },
  {
    name: "shows a cost that is not known as what is known of it",
    file: "src/rune/UsageTotals.ts",
    find: "(unpriced ? null : usd)",
    replace: "(unpriced ? usd : usd)",
    tests: [test("decide/Settlement")]
  },
  {
    name: "suspends the conversation for the budget of one spawned agent",
    file: "src/machine/decide/Exhaustion.ts",
    find: "owner !== undefined && owner.agent_id !== state.session.root_agent_id",
    replace: "owner !== undefined && owner.agent_id === state.session.root_agent_id",
    tests: [test("Plan")]
  },
  {
    name: "opens the circuit of a provider for what one conversation meets",
    file: "src/provider/Breaker.ts",
    find: "failures >= settings.failures && sources.length >= settings.sources",
    replace: "failures >= settings.failures",
    tests: ["test/provider/Resilience.test.ts"]
  },
  {
    name: "takes a time-out for a provider that is down",
    file: "src/provider/ProviderErrors.ts",
    find: 'timeout: { retryable: true, provider: "unknown"',
    replace: 'timeout: { retryable: true, provider: "down"',
    tests: ["test/provider/Resilience.test.ts"]
  },
  {
    name: "runs a call again that may have taken effect, unasked",
    file: "src/machine/decide/rerun.ts",
    find: 'if (facts.effect_class === "effect" && started)',
    replace: "if (started && !started)",
    tests: [test("Rerun")]
  },
  {
    name: "lets the same failed call be run again twice",
    file: "src/machine/evolve/turn.ts",
    find: "agent.failed_calls.filter((one) => one.call_id !== target.call_id)",
    replace: "agent.failed_calls.filter(() => true)",
    tests: [test("Rerun")]
  }
]
