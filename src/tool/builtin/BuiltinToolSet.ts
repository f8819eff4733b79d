// The built-in tools of a server as a service. Shell sessions end with their conversation, and all of them with the scope.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type BlobPort, OutputBlobs } from "../../contract/Blobs.ts"
import { DurableNotices } from "../../contract/DurableNotices.ts"
import { KnownSecrets } from "../../contract/KnownSecrets.ts"
import type { SecretMask } from "../../rune/Secrets.ts"
import { Processes, Workspaces } from "../../sandbox/Sandbox.ts"
import type { Tool } from "../Tool.ts"
import { builtinTools } from "./Builtin.ts"

export interface BuiltinOptions {
  readonly dataDirectory: string
  readonly home: string
  /** Where programs are looked for, as in the variable PATH. */
  readonly path: string
}

/** Blobs of outputs without what must not stand in anything that tools keep. */
export const maskedBlobs = Effect.gen(function* () {
  const blobs = yield* OutputBlobs
  const secrets = yield* KnownSecrets
  return masked(blobs, secrets)
})

const masked = (blobs: BlobPort, secrets: SecretMask): BlobPort => ({
  ...blobs,
  keep: (source, mediaType) =>
    blobs.keep(typeof source === "string" ? secrets.text(source) : secrets.bytes(source), mediaType)
})

const openTools = Effect.fnUntraced(function* ({ dataDirectory, home, path }: BuiltinOptions) {
  const parts = { blobs: yield* maskedBlobs, processes: yield* Processes, check: (yield* Workspaces).check }
  const opened = yield* Effect.acquireRelease(
    Effect.sync(() => builtinTools({ ownDirectories: [dataDirectory], home, path, ...parts })),
    ({ close }) => close
  )
  yield* DurableNotices.listen({
    name: "shell sessions",
    appended: (conversationId, runes) => {
      if (runes.some(({ kind }) => kind === "session.closing")) Effect.runFork(opened.closeConversation(conversationId))
    }
  })
  return opened.tools
})

export class BuiltinToolSet extends Context.Service<BuiltinToolSet, ReadonlyArray<Tool>>()("echs/BuiltinToolSet") {
  static readonly layer = (
    options: BuiltinOptions
  ): Layer.Layer<BuiltinToolSet, never, OutputBlobs | KnownSecrets | Processes | Workspaces | DurableNotices> =>
    Layer.effect(BuiltinToolSet, openTools(options))
}
