// Tells whoever looks elsewhere that something waits. Asked for by a click, and silent while the page is in sight.
import { signal } from "@preact/signals"
import { whenRaised } from "./Inbox.ts"
import { addressOf, go } from "./Route.ts"

const isThere = "Notification" in globalThis
export const canAskToNotify = signal(isThere && Notification.permission === "default")

export const askToNotify = async (): Promise<void> => {
  await Notification.requestPermission()
  canAskToNotify.value = Notification.permission === "default"
}

export const notifyWhenRaised = (): void =>
  whenRaised((item) => {
    if (!isThere || Notification.permission !== "granted" || !document.hidden || item.type === "notice") return
    const notice = new Notification(`${item.type}: ${item.title}`, {
      body: item.title_of_conversation ?? item.conversation_id,
      tag: item.id
    })
    notice.onclick = () => {
      focus()
      go(addressOf("inbox", item.id))
      notice.close()
    }
  })
