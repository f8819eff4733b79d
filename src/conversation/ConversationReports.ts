// What conversations report about themselves, besides their runes: what went wrong with work, the log, snapshots and
// thinning, and which conversation was read from its log. One synchronous channel; the log of the server listens.
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Channel, listening } from "../contract/Channel.ts"
import { DurableNotices, type NoticeBus } from "../contract/DurableNotices.ts"
import { describeError, type Log, ServerLog } from "../contract/ServerLog.ts"
import type { ConversationState } from "../machine/State.ts"
import type { ConversationId } from "../rune/Ids.ts"
import type { LogRefused } from "./ConversationErrors.ts"

export type ConversationReport =
  /** It was read from its log, and nothing of it runs yet. */
  | { readonly _tag: "Loaded"; readonly state: ConversationState }
  /** A piece of work crashed; it is tried again within its intensity. */
  | {
      readonly _tag: "WorkCrashed"
      readonly conversationId: ConversationId
      readonly work: string
      readonly cause: Cause.Cause<unknown>
    }
  | { readonly _tag: "LogRefused"; readonly error: LogRefused }
  /** Costs time at the next load, and nothing else. */
  | { readonly _tag: "SnapshotFailed"; readonly conversationId: ConversationId; readonly cause: unknown }
  /** Costs room on the disk, and nothing else. */
  | { readonly _tag: "ThinFailed"; readonly conversationId: ConversationId; readonly cause: unknown }

export type ReportChannel = Channel<readonly [report: ConversationReport]>

type Line = Parameters<Log["write"]>

/** How the log of the server tells it; nothing for what is no trouble. */
const lineOf = (report: ConversationReport): Line | undefined => {
  switch (report._tag) {
    case "Loaded":
      return undefined
    case "WorkCrashed": {
      const { cause, conversationId: conversation_id, work } = report
      return ["error", "work crashed", { conversation_id, work, cause: describeError(Cause.squash(cause)) }]
    }
    case "LogRefused":
      return ["error", "the log refused runes", { cause: describeError(report.error) }]
    case "SnapshotFailed":
    case "ThinFailed": {
      const message = report._tag === "SnapshotFailed" ? "no snapshot" : "a log was not thinned"
      return ["warn", message, { conversation_id: report.conversationId, cause: describeError(report.cause) }]
    }
  }
}

const passOn = (log: Log, notices: NoticeBus, report: ConversationReport): void => {
  if (report._tag === "Loaded") notices.loaded(report.state)
  const line = lineOf(report)
  if (line !== undefined) log.write(...line)
}

export class ConversationReports extends Context.Service<ConversationReports, ReportChannel>()(
  "echs/ConversationReports"
) {
  static readonly layer: Layer.Layer<ConversationReports, never, ServerLog | DurableNotices> = Layer.effect(
    ConversationReports,
    Effect.gen(function* () {
      const log = yield* ServerLog
      const notices = yield* DurableNotices
      const reports: ReportChannel = new Channel((listener, error) =>
        log.write("error", "a listener of reports failed", { listener, cause: describeError(error) })
      )
      yield* listening(() => reports.add("log", (report) => passOn(log, notices, report)))
      return reports
    })
  )
}
