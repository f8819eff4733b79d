// Shown to whoever is not signed in: how to get in from the machine itself, and a field for the token for everybody else.
import { useSignal } from "@preact/signals"
import { connection } from "../data/Connection.ts"
import { signInWithToken } from "../data/Session.ts"
import { Banner } from "./Bits.tsx"

export const SignIn = ({ onSignedIn }: { readonly onSignedIn: () => void }) => {
  const token = useSignal("")
  const failure = useSignal(connection.value._tag === "SignedOut" ? connection.value.message : undefined)
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    const outcome = await signInWithToken(token.value.trim())
    token.value = ""
    if (outcome._tag === "SignedIn") onSignedIn()
    else failure.value = outcome.message
  }
  return (
    <main class="center">
      <div class="card column">
        <h1>Sign in to ECHS</h1>
        {failure.value === undefined ? null : <Banner tone="failure">{failure.value}</Banner>}
        <p>
          On the machine that runs the server: <code>echs open</code>
        </p>
        <form class="stack" onSubmit={submit}>
          <label class="field">
            <span class="quiet">Or with a token (“echs token” shows where it is)</span>
            <input
              type="password"
              autocomplete="off"
              value={token.value}
              onInput={(event) => {
                token.value = event.currentTarget.value
              }}
            />
          </label>
          <button class="main" type="submit" disabled={token.value.trim() === ""}>
            Sign in
          </button>
        </form>
      </div>
    </main>
  )
}
