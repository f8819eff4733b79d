// What code may not do: wait without a bound, read the environment, ask the clock where answers must repeat, or
// leave a test out in silence.
import type { Rule } from "../Rule.ts"
import { isListed } from "../Rule.ts"
import {
  dottedName,
  type Finding,
  importsOf,
  isCode,
  isProduct,
  lineAt,
  type Node,
  nodesOf,
  type SourceFile
} from "../Source.ts"
import { deterministicAreas, environmentReaders, timerFiles } from "../tables.ts"

/** Findings for every node for which `fact` has something to say. */
const nodeFindings = (
  file: SourceFile,
  fact: (node: Node, parent: Node) => string | undefined
): ReadonlyArray<Finding> =>
  [...nodesOf(file)].flatMap(({ node, parent }) => {
    const found = fact(node, parent)
    return found === undefined ? [] : [{ path: file.path, line: lineAt(file, node.start), fact: found }]
  })

const argumentsOf = (node: Node): ReadonlyArray<unknown> => (Array.isArray(node["arguments"]) ? node["arguments"] : [])

const unboundedNames = /^(Tx)?(Queue|PubSub)\.unbounded$/

const unboundedFact = (node: Node): string | undefined => {
  const name = node.type === "MemberExpression" ? dottedName(node) : undefined
  if (name !== undefined && unboundedNames.test(name)) return `${name} has no bound`
  if (node.type === "CallExpression") return unboundedMake(node)
  const { key, value } = node as { readonly key?: unknown; readonly value?: unknown }
  if (node.type !== "Property" || !["capacity", "bufferSize"].includes(dottedName(key) ?? "")) return undefined
  const isUnbounded = (value as Node | undefined)?.["value"] === "unbounded" || dottedName(value) === "Infinity"
  return isUnbounded ? `${dottedName(key)} has no bound` : undefined
}

/** `Queue.make()` and `Mailbox.make()` are unbounded unless told otherwise. */
const unboundedMake = (node: Node): string | undefined => {
  const name = dottedName(node["callee"])
  if (name !== "Queue.make" && name !== "Mailbox.make") return undefined
  const [options] = argumentsOf(node) as ReadonlyArray<Node>
  const properties = (options?.["properties"] ?? []) as ReadonlyArray<Node>
  const hasCapacity = properties.some((property) => dottedName(property["key"]) === "capacity")
  const isNumber = options?.type === "Literal"
  return hasCapacity || isNumber ? undefined : `${name} is given no capacity`
}

const timerFact = (node: Node): string | undefined => {
  const name = node.type === "CallExpression" ? dottedName(node["callee"])?.replace(/^globalThis\./, "") : undefined
  return name === "setTimeout" || name === "setInterval"
    ? `${name} is not on Effect's clock: use Effect.sleep, or src/contract/Timers.ts`
    : undefined
}

const timers: Rule = {
  name: "timers are on Effect's clock, except in the files of decision 0026",
  check: (files) => {
    const product = files.filter(isProduct)
    const found = product.map((file) => ({ file, timers: nodeFindings(file, timerFact) }))
    return found.flatMap(({ file, timers: set }) => {
      if (!isListed(file.path, timerFiles)) return set
      return set.length > 0 || !timerFiles.includes(file.path)
        ? []
        : [{ path: file.path, fact: "sets no timer any more: strike it from timerFiles" }]
    })
  },
  broken: [
    { tree: { "src/a/A.ts": "setTimeout(run, 5)" }, fact: /setTimeout is not on Effect's clock/ },
    { tree: { "src/a/A.ts": "const t = globalThis.setInterval(run, 5)" }, fact: /setInterval is not on/ },
    { tree: { "src/turn/Coalescer.ts": "const a = 1" }, fact: /sets no timer any more/ }
  ],
  sound: [
    { "src/turn/Coalescer.ts": "setTimeout(run, 5)" },
    { "src/a/A.ts": "after(5, run)", "test/a/A.ts": "setTimeout(run, 5)" }
  ]
}

const boundedQueues: Rule = {
  name: "every queue has a bound",
  check: (files) => files.filter(isProduct).flatMap((file) => nodeFindings(file, unboundedFact)),
  broken: [
    { tree: { "src/a/A.ts": "const queue = Queue.unbounded<number>()" }, fact: /Queue\.unbounded has no bound/ },
    { tree: { "src/a/A.ts": "const hub = yield* PubSub.unbounded()" }, fact: /PubSub\.unbounded has no bound/ },
    { tree: { "src/a/A.ts": "const queue = Queue.make()" }, fact: /Queue\.make is given no capacity/ },
    { tree: { "src/a/A.ts": 'const queue = Queue.make({ strategy: "sliding" })' }, fact: /is given no capacity/ },
    { tree: { "src/a/A.ts": "const box = Mailbox.make()" }, fact: /Mailbox\.make is given no capacity/ },
    { tree: { "src/a/A.ts": 'Stream.buffer({ capacity: "unbounded" })' }, fact: /capacity has no bound/ },
    { tree: { "src/a/A.ts": "const x = { bufferSize: Infinity }" }, fact: /bufferSize has no bound/ }
  ],
  sound: [
    { "src/a/A.ts": "const queue = Queue.make({ capacity: 16 })\nconst other = Queue.bounded(16)" },
    { "src/a/A.ts": "// Queue.unbounded would grow\nconst text = 'Queue.unbounded()'" }
  ]
}

const readsEnvironment = (node: Node): string | undefined => {
  const name = node.type === "MemberExpression" ? dottedName(node) : undefined
  return name === "process.env" || name === "globalThis.process.env" ? "reads process.env" : undefined
}

const environment: Rule = {
  name: "only config reads the environment",
  check: (files) =>
    files
      .filter((file) => isProduct(file) && !isListed(file.path, environmentReaders))
      .flatMap((file) => [
        ...nodeFindings(file, readsEnvironment),
        ...importsOf(file)
          .filter(
            ({ specifier, names }) =>
              specifier === "node:process" && names.some((name) => name === "env" || name === "*")
          )
          .map(({ line }) => ({ path: file.path, line, fact: "imports the environment" }))
      ]),
  broken: [
    { tree: { "src/server/A.ts": 'const port = process.env["PORT"]' }, fact: /reads process\.env/ },
    { tree: { "src/server/A.ts": "const { PORT } = process.env" }, fact: /reads process\.env/ },
    { tree: { "runelog/A.ts": 'const port = process["env"].PORT' }, fact: /reads process\.env/ },
    { tree: { "src/server/A.ts": 'import { env } from "node:process"' }, fact: /imports the environment/ }
  ],
  sound: [
    { "src/config/A.ts": "export const variables = process.env" },
    { "src/server/A.ts": "// process.env is read by config\nconst x = process.pid" },
    { "test/a.test.ts": "process.env.SEED" }
  ]
}

const unrepeatable = new Set([
  "Date.now",
  "Math.random",
  "performance.now",
  "process.hrtime",
  "process.hrtime.bigint",
  "crypto.randomUUID",
  "setTimeout",
  "setInterval",
  "setImmediate"
])

const unrepeatableFact = (node: Node): string | undefined => {
  const name = node.type === "CallExpression" ? dottedName(node["callee"]) : undefined
  if (name !== undefined && unrepeatable.has(name.replace(/^globalThis\./, ""))) return `calls ${name}`
  const isClock =
    node.type === "NewExpression" && dottedName(node["callee"]) === "Date" && argumentsOf(node).length === 0
  return isClock ? "calls new Date()" : undefined
}

const repeatable: Rule = {
  name: "machines and runes ask neither clock nor dice",
  check: (files) =>
    files
      .filter((file) => isCode(file) && isListed(file.path, deterministicAreas))
      .flatMap((file) => nodeFindings(file, unrepeatableFact)),
  broken: [
    { tree: { "src/machine/A.ts": "const at = Date.now()" }, fact: /calls Date\.now/ },
    { tree: { "src/rune/A.ts": "const at = new Date()" }, fact: /calls new Date/ },
    { tree: { "src/machine/A.ts": "const x = Math.random() < 0.5" }, fact: /calls Math\.random/ },
    { tree: { "src/machine/A.ts": "globalThis.setTimeout(() => {}, 5)" }, fact: /calls globalThis\.setTimeout/ }
  ],
  sound: [
    { "src/machine/A.ts": "// Date.now() is not asked\nconst at = new Date(tsMs)" },
    { "src/server/A.ts": "const at = Date.now()" }
  ]
}

const testRoots = new Set(["it", "test", "describe", "suite"])
const forbiddenModes = new Set(["only", "skip", "todo", "skipIf", "runIf"])

const leftOutFact = (node: Node): string | undefined => {
  if (node.type === "CallExpression" && /^(context|ctx|task)\.skip$/.test(dottedName(node["callee"]) ?? "")) {
    return argumentsOf(node).length === 0 ? "skips without a reason" : undefined
  }
  const [root = "", ...rest] = (node.type === "MemberExpression" ? dottedName(node) : undefined)?.split(".") ?? []
  const mode = rest.at(-1) ?? ""
  if (!testRoots.has(root) || !forbiddenModes.has(mode)) return undefined
  return mode === "only"
    ? `${root}.only leaves out all others`
    : `${root}.${mode} gives no reason; use requirePart or context.skip(reason)`
}

const nothingLeftOut: Rule = {
  name: "no test is left out without a reason",
  check: (files) =>
    files
      .filter((file) => isCode(file) && file.path.startsWith("test/"))
      .flatMap((file) => nodeFindings(file, leftOutFact)),
  broken: [
    { tree: { "test/a.test.ts": 'it.only("works", () => {})' }, fact: /it\.only leaves out all others/ },
    { tree: { "test/a.test.ts": 'it.effect.only("works", () => {})' }, fact: /it\.only/ },
    { tree: { "test/a.test.ts": 'describe.skip("works", () => {})' }, fact: /describe\.skip gives no reason/ },
    { tree: { "test/a.test.ts": 'it.skipIf(true)("works", () => {})' }, fact: /it\.skipIf gives no reason/ },
    { tree: { "test/a.test.ts": 'it.todo("works")' }, fact: /it\.todo gives no reason/ },
    { tree: { "test/a.test.ts": 'it("works", (context) => context.skip())' }, fact: /skips without a reason/ }
  ],
  sound: [
    { "test/a.test.ts": 'it("works", (context) => context.skip("needs strace"))' },
    { "test/a.test.ts": 'const text = "it.only"; stream.skip(1); // describe.skip' }
  ]
}

const shouldFact = (node: Node): string | undefined => {
  if (node.type !== "CallExpression" || !testRoots.has((dottedName(node["callee"]) ?? "").split(".")[0] ?? ""))
    return undefined
  const [title] = argumentsOf(node) as ReadonlyArray<Node>
  const text = title?.type === "Literal" ? String(title["value"]) : ""
  return /\bshould\b/i.test(text) ? `"${text}" is a wish; state the fact` : undefined
}

const factsAsNames: Rule = {
  name: "a test is named by the fact it shows",
  check: (files) =>
    files
      .filter((file) => isCode(file) && file.path.startsWith("test/"))
      .flatMap((file) => nodeFindings(file, shouldFact)),
  broken: [
    { tree: { "test/a.test.ts": 'it("should work", () => {})' }, fact: /is a wish/ },
    { tree: { "test/a.test.ts": 'it.effect("the log Should work", () => {})' }, fact: /is a wish/ }
  ],
  sound: [{ "test/a.test.ts": 'it("shoulders the load", () => {})\nlog("should")' }]
}

export const behaviorRules: ReadonlyArray<Rule> = [
  boundedQueues,
  timers,
  environment,
  repeatable,
  nothingLeftOut,
  factsAsNames
]
