/// <reference path="./modules.d.ts" />
// The page: signs in, connects, and shows the view that its address names.
import { signal } from "@preact/signals"
import { render } from "preact"
import { client, connect, connection } from "./data/Connection.ts"
import { followInbox } from "./data/Inbox.ts"
import { notifyWhenRaised } from "./data/Notify.ts"
import { followAddress, route } from "./data/Route.ts"
import { renewSession, takeTicket } from "./data/Session.ts"
import "./style.css"
import { Conversation, followConversation } from "./view/Conversation.tsx"
import { Conversations } from "./view/Conversations.tsx"
import { Goals } from "./view/Goals.tsx"
import { Inbox } from "./view/Inbox.tsx"
import { followKeyboard } from "./view/Keyboard.ts"
import { Keys } from "./view/Keys.tsx"
import { lazy } from "./view/Lazy.tsx"
import { Shell } from "./view/Shell.tsx"
import { SignIn } from "./view/SignIn.tsx"
import { isWelcome } from "./view/Welcome.tsx"

const isReady = signal(false)

/** Views that are not needed at first are loaded when they are opened. */
const Overview = lazy(() => import("./view/Overview.tsx").then(({ Overview: found }) => found))
const Policy = lazy(() => import("./view/Policy.tsx").then(({ Policy: found }) => found))

const online = (): void => {
  isReady.value = true
  followConversation()
  void followInbox(client())
  void client()
    .call("conversation.list", { limit: 1 })
    .then(({ items }) => {
      isWelcome.value = items.length === 0
    })
}

const start = (): Promise<void> => connect(online)

const View = () => {
  // Before the first welcome there is nobody to ask.
  if (!isReady.value) return <div class="empty quiet">Connecting…</div>
  switch (route.value.view) {
    case "conversations":
      return <Conversations />
    case "conversation":
      return <Conversation />
    case "goals":
      return <Goals />
    case "policy":
      return <Policy />
    case "overview":
      return <Overview />
    default:
      return <Inbox />
  }
}

const Page = () => {
  const now = connection.value
  if (now._tag === "SignedOut") return <SignIn onSignedIn={() => void start()} />
  return (
    <Shell>
      <View />
      <Keys />
    </Shell>
  )
}

const ticket = await takeTicket()
followAddress()
followKeyboard()
notifyWhenRaised()
render(<Page />, document.getElementById("page") as HTMLElement)
if (ticket?._tag === "Refused") connection.value = { _tag: "SignedOut", message: ticket.message }
if (ticket === undefined) await renewSession()
if (ticket?._tag !== "Refused") await start()
