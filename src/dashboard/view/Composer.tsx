// What is said to an agent: queued for after its turn, or steered into it; and stopping it. Images go along as uploads.
import { useSignal } from "@preact/signals"
import type { ConversationSummary, Fields, Uploaded } from "../../client/Client.ts"
import { client, failureText } from "../data/Connection.ts"
import { Key } from "./Bits.tsx"

type Content = Fields<"message.post">["content"]

interface Attached extends Uploaded {
  readonly name: string
}

const contentOf = (text: string, images: ReadonlyArray<Attached>): Content =>
  images.length === 0
    ? text
    : [
        ...(text.trim() === "" ? [] : [{ type: "text" as const, text }]),
        ...images.map(({ bytes, sha256 }) => ({ type: "image" as const, blob: { sha256, bytes } }))
      ]

/** What is being written, and what can be done with it. */
const useDraft = (id: string) => {
  const text = useSignal("")
  const images = useSignal<ReadonlyArray<Attached>>([])
  const failure = useSignal("")
  const attempt = async (run: () => Promise<unknown>): Promise<void> => {
    failure.value = ""
    try {
      await run()
    } catch (error) {
      failure.value = failureText(error)
    }
  }
  const send = async (mode: "queue" | "steer"): Promise<void> => {
    const content = contentOf(text.value, images.value)
    if (content.length === 0 || (typeof content === "string" && content.trim() === "")) return
    await attempt(async () => {
      await client().call("message.post", { conversation_id: id, content, mode })
      text.value = ""
      images.value = []
    })
  }
  const stop = (): Promise<void> => attempt(() => client().call("turn.interrupt", { conversation_id: id }))
  const attach = (files: FileList | null): Promise<void> =>
    attempt(async () => {
      for (const file of files ?? []) {
        const uploaded = await client().upload(new Uint8Array(await file.arrayBuffer()))
        images.value = [...images.value, { ...uploaded, name: file.name }]
      }
    })
  return { text, images, failure, send, stop, attach }
}

type Draft = ReturnType<typeof useDraft>

const Buttons = ({ draft, isWorking }: { readonly draft: Draft; readonly isWorking: boolean }) => (
  <div class="actions">
    <button type="submit" class="main">
      Queue <Key name="⏎" />
    </button>
    <button type="button" onClick={() => void draft.send("steer")}>
      Steer <Key name="Ctrl ⏎" />
    </button>
    <button type="button" class="danger" disabled={!isWorking} onClick={() => void draft.stop()}>
      Stop <Key name="Esc" />
    </button>
    <label class="button">
      Image
      <input
        class="sr"
        type="file"
        accept="image/png,image/jpeg,image/gif,image/webp"
        multiple
        onChange={(event) => void draft.attach(event.currentTarget.files)}
      />
    </label>
  </div>
)

export const Composer = ({ summary }: { readonly summary: ConversationSummary }) => {
  const draft = useDraft(summary.conversation_id)
  const { failure, images, send, stop, text } = draft
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        void send("queue")
      }}
    >
      {failure.value === "" ? null : (
        <p class="bad" role="alert">
          {failure.value}
        </p>
      )}
      {images.value.length === 0 ? null : (
        <p class="quiet small">{images.value.map(({ name }) => name).join(", ")} attached</p>
      )}
      <textarea
        aria-label="Message"
        placeholder="Say something to the agent"
        rows={2}
        value={text.value}
        data-composer
        onInput={(event) => {
          text.value = event.currentTarget.value
        }}
        onPaste={(event) => void draft.attach(event.clipboardData?.files ?? null)}
        onKeyDown={(event) => {
          if (event.key === "Escape") void stop()
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
          event.preventDefault()
          void send(event.ctrlKey || event.metaKey ? "steer" : "queue")
        }}
      />
      <Buttons draft={draft} isWorking={summary.working} />
    </form>
  )
}
