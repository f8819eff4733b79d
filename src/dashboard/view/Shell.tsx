// The frame around every view: navigation, the state of the connection, the theme.
import { effect, signal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { connection, lastHeardMs, principal, role } from "../data/Connection.ts"
import { waitingCount } from "../data/Inbox.ts"
import { addressOf, route, type ViewName } from "../data/Route.ts"
import { signOut } from "../data/Session.ts"
import { clock } from "../state/Format.ts"

type Theme = "system" | "light" | "dark"
const themes: ReadonlyArray<Theme> = ["system", "light", "dark"]
const themeKey = "echs theme"

const readTheme = (): Theme => {
  const kept = localStorage.getItem(themeKey)
  return themes.find((theme) => theme === kept) ?? "system"
}

const theme = signal<Theme>(readTheme())
effect(() => {
  if (theme.value === "system") delete document.documentElement.dataset["theme"]
  else document.documentElement.dataset["theme"] = theme.value
  localStorage.setItem(themeKey, theme.value)
})

effect(() => {
  const count = waitingCount.value
  document.title = count === 0 ? "ECHS" : `(${count}) ECHS`
})

const icons: Readonly<Record<string, string>> = {
  inbox: "M3 13l2.5-8h9L17 13v4H3zM3 13h4l1 2h4l1-2h4",
  goals: "M10 3a7 7 0 100 14 7 7 0 000-14zM10 7a3 3 0 100 6 3 3 0 000-6z",
  conversations: "M3 5h14v9H9l-4 3v-3H3z",
  leave: "M12 5V3H4v14h8v-2M8 10h9m-3-3l3 3-3 3",
  policy: "M10 3l6 2v5c0 4-3 6-6 7-3-1-6-3-6-7V5zM7 10l2 2 4-4",
  overview: "M4 16V9M8 16V4M12 16v-5M16 16V7"
}

const Icon = ({ name }: { readonly name: string }) => (
  <svg
    viewBox="0 0 20 20"
    fill="none"
    stroke="currentColor"
    stroke-width="1.6"
    stroke-linejoin="round"
    stroke-linecap="round"
    aria-hidden="true"
  >
    <path d={icons[name] ?? ""} />
  </svg>
)

const places: ReadonlyArray<readonly [ViewName, string]> = [
  ["inbox", "Inbox"],
  ["goals", "Goals"],
  ["conversations", "Conversations"],
  ["policy", "Policy"],
  ["overview", "Overview"]
]

const isHere = (view: ViewName): boolean =>
  route.value.view === view || (view === "conversations" && route.value.view === "conversation")

/** The page starts anew: nothing that was shown stays in its memory. */
const leave = async (): Promise<void> => {
  await signOut()
  location.reload()
}

const Rail = () => (
  <nav class="rail" aria-label="Main">
    <div class="brand">
      <svg
        viewBox="0 0 20 20"
        aria-hidden="true"
        fill="none"
        stroke="currentColor"
        stroke-width="2"
        stroke-linecap="round"
      >
        <path d="M4 5h12M4 10h7M4 15h12" />
        <circle cx="15.5" cy="10" r="1" fill="currentColor" />
      </svg>
      <span>ECHS</span>
    </div>
    {places.map(([view, word]) => (
      <a key={view} href={addressOf(view)} aria-current={isHere(view) ? "page" : undefined}>
        <Icon name={view} />
        <span class="word">{word}</span>
        {view === "inbox" && waitingCount.value > 0 ? (
          <span class="badge">
            {waitingCount.value}
            <span class="sr"> waiting</span>
          </span>
        ) : null}
      </a>
    ))}
    <div class="foot small quiet">
      <button
        type="button"
        class="plain small"
        onClick={() => {
          theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? "system"
        }}
      >
        <span aria-hidden="true">◑</span>
        <span class="word">Theme: {theme.value}</span>
      </button>
      <button type="button" class="plain small" onClick={() => void leave()}>
        <Icon name="leave" />
        <span class="word">Sign out</span>
      </button>
      <span class="word">
        {principal.value} · {role.value}
      </span>
    </div>
  </nav>
)

const ConnectionBar = () => {
  const now = connection.value
  if (now._tag !== "Lost") return null
  const heard = lastHeardMs.value === 0 ? "" : `, last news ${clock(lastHeardMs.value)}`
  return (
    <div class="bar" role="status">
      Reconnecting{heard}. Decisions made now are sent once when the server is back.
    </div>
  )
}

export const Shell = ({ children }: { readonly children: ComponentChildren }) => (
  <div class="shell">
    <ConnectionBar />
    <Rail />
    <main>{children}</main>
  </div>
)
