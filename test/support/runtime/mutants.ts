// Runtimes that break one promise each, on purpose. A simulation that does not notice proves nothing. Most are broken
// where they touch the world, through the ports they have; the few that are broken inside their machines are so
// through `machine`, which a test puts in front of the real ones.
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { Disk } from "#runelog/disk/Disk.ts"
import type { Command } from "#src/machine/Command.ts"
import type { Verdict } from "#src/machine/decide/Decide.ts"
import type { RequestMessage } from "#src/machine/view/Request.ts"
import type { Resolution } from "#src/machine/work/Recovery.ts"
import type { ModelProvider, ProviderEvent } from "#src/provider/Provider.ts"
import type { Registry } from "#src/provider/Registry.ts"
import type { AnyRune, RuneDraft } from "#src/rune/Rune.ts"
import type { RuneStore } from "#src/store/runes/RuneStore.ts"
import type { ToolPort } from "#src/tool/ToolPort.ts"
import { withoutSync } from "../disk/DiskMutant.ts"
import type { Defect } from "./Simulated.ts"

/** What a broken machine makes of the answer of the sound one. */
export interface MachineDefect {
  readonly decide?: (command: Command, verdict: Verdict) => Verdict
  readonly recovery?: (resolution: Resolution) => Resolution
  readonly request?: (messages: ReadonlyArray<RequestMessage>) => ReadonlyArray<RequestMessage>
}

export interface Mutant extends Defect {
  readonly machine?: MachineDefect
  /** What the judge says of it. */
  readonly caughtBy: RegExp
}

const neverSyncsJournal = (disk: Disk): Disk => ({
  ...withoutSync(disk),
  open: (path, mode) => (path.includes(".jnl") ? withoutSync(disk) : disk).open(path, mode)
})

/** The store with some of its methods replaced. */
const storeWith = (store: RuneStore, changed: Partial<RuneStore>): RuneStore =>
  new Proxy(store, {
    get: (target, name) => {
      const method = Reflect.get(changed, name) ?? Reflect.get(target, name)
      return typeof method === "function" ? method.bind(target) : method
    }
  })

const acknowledgesEarly = (store: RuneStore): RuneStore =>
  storeWith(store, {
    appendNow: (...append) => {
      store.appendNow(...append).catch(() => undefined)
      return Promise.resolve()
    }
  })

/** The newest result in a log, if its turn has not got any further. */
const lastResult = (runes: ReadonlyArray<AnyRune>): AnyRune | undefined => {
  const last = runes.at(-1)
  return last?.kind === "tool.result" ? last : undefined
}

const forgetsResults = (store: RuneStore): RuneStore =>
  storeWith(store, {
    pagesNow: async function* (...read) {
      for await (const page of store.pagesNow(...read)) {
        const dropped = lastResult(page.runes)
        yield { ...page, runes: page.runes.filter((rune) => rune !== dropped) }
      }
    }
  })

const providerOf = (registry: Registry, change: (provider: ModelProvider) => ModelProvider): Registry => ({
  ...registry,
  resolve: (fullName) =>
    Result.map(registry.resolve(fullName), (resolved) => ({ ...resolved, provider: change(resolved.provider) }))
})

const takesCutsForEnds = (provider: ModelProvider): ModelProvider => ({
  name: provider.name,
  stream: (request, options) => {
    let content = ""
    const heard = Stream.tap(provider.stream(request, options), (event) =>
      Effect.sync(() => {
        if (event.type === "assistant_delta") content += event.content
      })
    )
    return Stream.catch(heard, () =>
      Stream.make<ReadonlyArray<ProviderEvent>>(
        { type: "assistant_final", content, items: [{ type: "text", text: content }] },
        { type: "done", stop_reason: "end_turn" }
      )
    )
  }
})

const declaresAllRepeatable = (tools: ToolPort): ToolPort => ({
  ...tools,
  facts: (...about) => {
    const facts = tools.facts(...about)
    return facts?.effect_class === "effect" ? { ...facts, effect_class: "idempotent" } : facts
  }
})

const runsTwice = (tools: ToolPort): ToolPort => ({
  ...tools,
  run: (...call) => Effect.andThen(tools.run(...call), tools.run(...call))
})

const asksNobody = (tools: ToolPort): ToolPort => ({
  ...tools,
  run: (_state, call) => Effect.succeed({ status: "success", output: `${call.tool_name}: done` })
})

const onDrafts =
  (change: (drafts: ReadonlyArray<RuneDraft>, command: Command) => ReadonlyArray<RuneDraft>) =>
  (command: Command, verdict: Verdict): Verdict =>
    verdict._tag === "Accepted" ? { ...verdict, drafts: change(verdict.drafts, command) } : verdict

const asFailure = (draft: RuneDraft): RuneDraft =>
  draft.kind === "turn.interrupted"
    ? ({
        ...draft,
        kind: "turn.error",
        payload: { error_type: "interrupted", message: "it was stopped", retryable: true }
      } as RuneDraft)
    : draft

const isEnd = ({ kind }: RuneDraft): boolean => kind === "turn.completed" || kind === "turn.interrupted"

export const mutants: { readonly [what: string]: Mutant } = {
  "acknowledges before anything is durable": {
    store: acknowledgesEarly,
    caughtBy: /answered for is still there|start is not on record|live state of/
  },
  "runs on a journal that is never synced": {
    disk: neverSyncsJournal,
    caughtBy: /still there|start is not on record/
  },
  "forgets the last tool result at recovery": { store: forgetsResults, caughtBy: /invariants|taken up again/ },
  "leaves calls that a crash cut short as they are": {
    machine: { recovery: (resolution) => ({ ...resolution, drafts: [], resolved: 0 }) },
    // The machine takes no second start of such a call, so it is the turn that fails.
    caughtBy: /failed: what ran the call broke down/
  },
  "takes every tool for one that may be repeated": {
    tools: declaresAllRepeatable,
    caughtBy: /ran 2 times/
  },
  "runs a call twice for good measure": { tools: runsTwice, caughtBy: /ran 2 times/ },
  "answers for a tool that never ran": { tools: asksNobody, caughtBy: /on record and did not run/ },
  "takes a stream that was cut for an answer": {
    registry: (registry) => providerOf(registry, takesCutsForEnds),
    caughtBy: /is over before its end/
  },
  "counts a stop as a failure": {
    machine: { decide: onDrafts((drafts) => drafts.map(asFailure)) },
    caughtBy: /a stop ended in turn.error/
  },
  "leaves a stopped turn without its end": {
    machine: {
      decide: onDrafts((drafts, { _tag }) => (_tag === "InterruptTurn" ? drafts.filter((one) => !isEnd(one)) : drafts))
    },
    caughtBy: /a stop ended in nothing/
  },
  "leaves a finished turn without its end": {
    machine: { decide: onDrafts((drafts) => drafts.filter(({ kind }) => kind !== "turn.completed")) },
    caughtBy: /does not come to rest|crashed/
  },
  "leaves out a tool result when it asks the model": {
    machine: { request: (messages) => messages.filter(({ role }, at) => role !== "tool" || at < messages.length - 1) },
    caughtBy: /unanswered/
  }
}
