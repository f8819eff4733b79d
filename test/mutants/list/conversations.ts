// Lies in what a conversation promises while it works: what is started when, what a model is sent, what a copy does, and
// what a moment without resources ends.
import type { Mutant } from "../Mutant.ts"

export const conversationMutants: ReadonlyArray<Mutant> = [
  {
    name: "takes a moment without descriptors for a broken disk",
    file: "runelog/RunelogErrors.ts",
    find: 'new Set(["EMFILE", "ENFILE", "ENOMEM", "EAGAIN"])',
    replace: "new Set<string>([])",
    tests: ["test/runelog/Scarce.test.ts"]
  },
  {
    name: "works on after the log was found read-only",
    file: "src/conversation/Actor.ts",
    find: "if (this.over === undefined) this.fail(cause)",
    replace: "",
    tests: ["test/e2e/readOnly.test.ts"]
  },
  {
    name: "starts the programs of a goal before their rune is on disk",
    file: "src/conversation/Runtime.ts",
    find: "await commands.settled()",
    replace: "",
    tests: ["test/conversation/Durable.test.ts"]
  },
  {
    name: "takes a budget in dollars for a model without a price",
    file: "src/conversation/Conversations.ts",
    find: 'if (message === undefined) return\n    const refusal = { code: "bad_request", message, data: { reason: "price_unknown"',
    replace: 'if (true) return\n    const refusal = { code: "bad_request", message, data: { reason: "price_unknown"',
    tests: ["test/conversation/PriceCheck.test.ts"]
  },
  {
    name: "does in a copy what the original had under way",
    file: "src/machine/decide/Copying.ts",
    find: 'const isEnded = start.work === "ended"',
    replace: "const isEnded = false",
    tests: ["test/machine/decide/Copying.test.ts"]
  },
  {
    name: "learns nothing from a model that refuses the size of a request",
    file: "src/turn/Compaction.ts",
    find: "catalog.learnSize(resolved.fullName, sizeFromRefusal(error, estimateInputTokens(request)))",
    replace: "sizeFromRefusal(error, estimateInputTokens(request))",
    tests: ["test/e2e/unknownModel.test.ts"]
  },
  {
    name: "cuts a stream off that is not silent",
    file: "src/provider/Call.ts",
    find: "      lastBeat = now\n",
    replace: "",
    tests: ["test/provider/Call.test.ts"]
  },
  {
    name: "offers a model more tools than it takes",
    file: "src/turn/ToolOffer.ts",
    find: "const kept = fit.length > providerLimits.toolsMax ? chosen(fit, isOwn) : new Set(fit)",
    replace: "const kept = fit.length < 0 ? chosen(fit, isOwn) : new Set(fit)",
    tests: ["test/e2e/toolOffer.test.ts"]
  },
  {
    name: "offers a schema whose root is a union as it is",
    file: "src/provider/ToolSchema.ts",
    find: '["anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref", "$dynamicRef"]',
    replace: '["not"]',
    tests: ["test/provider/ToolSchema.test.ts"]
  },
  {
    name: "holds the first piece of a stream back",
    file: "src/turn/Coalescer.ts",
    find: "this.hasBegun ? everyMs : 0",
    replace: "everyMs",
    tests: ["test/turn/Coalescer.test.ts"]
  },
  {
    name: "tells a model what it was told before",
    file: "src/prompt/Prompts.ts",
    find: "known.get(name) !== sha256",
    replace: "name !== sha256",
    tests: ["test/prompt/Prompts.test.ts", "test/e2e/prompt.test.ts"]
  },
  {
    name: "runs hooks of one conversation at the same time",
    file: "src/hook/Pipeline.ts",
    find: "left.conversation_id === right.conversation_id ||\n",
    replace: "",
    tests: ["test/hook/Pipeline.test.ts"]
  },
  {
    name: "follows a .git file to a repository that does not name the workspace",
    file: "src/sandbox/OuterRepository.ts",
    find: 'if (back === undefined || resolve(own.path, back) !== join(work.path, ".git")) return undefined',
    replace: "if (back === undefined) return undefined",
    tests: ["test/sandbox/OuterRepository.test.ts"]
  },
  {
    name: "sees no repository above a package",
    file: "src/sandbox/OuterRepository.ts",
    find: 'if (top.look(".git") === undefined) continue',
    replace: 'if (top.look(".git") !== undefined) return undefined',
    tests: ["test/sandbox/OuterRepository.test.ts"]
  },
  {
    name: "takes the exit code of a program for one of the sandbox",
    file: "src/sandbox/process/Processes.ts",
    find: 'if (answer._tag === "Open") return undefined',
    replace: 'if (answer._tag === "Open" && exit.exit_code !== 125) return undefined',
    tests: ["test/sandbox/process/Processes.test.ts"]
  },
  {
    name: "takes a grant for a tool that describes itself otherwise now",
    file: "src/policy/Evaluate.ts",
    find: "if (definition !== undefined && definition !== (grant.rule as Partial<Rule> | undefined)?.definition) return false",
    replace: "",
    tests: ["test/policy/Evaluate.test.ts"]
  },
  {
    name: "takes a setting that nobody reads",
    file: "src/config/Settings.ts",
    find: "if (all.has(name)) continue\n    const meant",
    replace: "if (all.size >= 0) continue\n    const meant",
    tests: ["test/config/Settings.test.ts"]
  },
  {
    name: "reads a rune of a newer version as if it were of this one",
    file: "src/rune/Rune.ts",
    find: "if (definition === undefined || open.schema_version > definition.version) {",
    replace: "if (definition === undefined) {",
    tests: ["test/rune/Rune.test.ts"]
  }
]
