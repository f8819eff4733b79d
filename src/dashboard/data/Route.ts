// Where the page is. Every pane has an address behind "#", so that going back works and a link shows a colleague the same
// moment of the same conversation.
import { signal } from "@preact/signals"

export type ViewName = "inbox" | "goals" | "conversations" | "conversation" | "policy" | "overview"

export interface Route {
  readonly view: ViewName
  /** The item, or the conversation. */
  readonly id: string
  /** The event a conversation is looked at; live when undefined. */
  readonly at: number | undefined
}

export const parseRoute = (hash: string): Route => {
  const [first = "", id = "", third, at] = hash
    .replace(/^#\/?/, "")
    .split("/")
    .map((part) => decodeURIComponent(part))
  if (first === "c" && id !== "")
    return { view: "conversation", id, at: third === "at" && /^\d{1,15}$/.test(at ?? "") ? Number(at) : undefined }
  const known: ReadonlyArray<ViewName> = ["inbox", "goals", "conversations", "policy", "overview"]
  const view = known.find((name) => name === first) ?? "inbox"
  return { view, id, at: undefined }
}

export const addressOf = (view: ViewName, id = "", at?: number): string => {
  const name = view === "conversation" ? "c" : view
  const item = id === "" ? "" : `/${encodeURIComponent(id)}`
  return `#/${name}${item}${at === undefined ? "" : `/at/${at}`}`
}

export const route = signal<Route>(parseRoute(""))

export const followAddress = (): void => {
  const read = (): void => {
    route.value = parseRoute(location.hash)
  }
  addEventListener("hashchange", read)
  read()
}

export const go = (address: string): void => {
  if (location.hash !== address) location.hash = address
}

/** The same without an entry of its own in the history, as while scrubbing. */
export const replace = (address: string): void => {
  history.replaceState(null, "", address)
  route.value = parseRoute(address)
}
