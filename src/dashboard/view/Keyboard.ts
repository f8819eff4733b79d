// Keys of the whole page. Whoever types into a field types; everybody else commands.
import { addressOf, go, route, type ViewName } from "../data/Route.ts"
import { inboxKey } from "./Inbox.tsx"
import { areKeysShown } from "./Keys.tsx"

const places: Readonly<Record<string, ViewName>> = {
  i: "inbox",
  g: "goals",
  c: "conversations",
  p: "policy",
  o: "overview"
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

export const followKeyboard = (): void => {
  let isGoing = false
  addEventListener("keydown", (event) => {
    if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return
    if (document.querySelector("dialog[open]") !== null) return
    const place = isGoing ? places[event.key] : undefined
    isGoing = !isGoing && event.key === "g"
    if (place !== undefined) go(addressOf(place))
    else if (event.key === "?") areKeysShown.value = true
    else if (isGoing || route.value.view !== "inbox" || !inboxKey(event.key)) return
    event.preventDefault()
  })
}
