// The keys of the page, shown with "?".
import { signal } from "@preact/signals"

export const areKeysShown = signal(false)

const keys: ReadonlyArray<readonly [string, string]> = [
  ["j, k", "next, previous"],
  ["a", "allow once; approve a plan"],
  ["s", "allow in this conversation"],
  ["r", "allow by rule"],
  ["e", "edit the arguments; answer a question"],
  ["d", "deny; send a plan back"],
  ["g i, g g, g c, g p, g o", "inbox, goals, conversations, policy, overview"],
  ["?", "these keys"]
]

export const Keys = () =>
  areKeysShown.value ? (
    <dialog
      aria-label="Keys"
      ref={(element) => {
        if (element !== null && !element.open) element.showModal()
      }}
      onClose={() => {
        areKeysShown.value = false
      }}
    >
      <div class="stack">
        <h1>Keys</h1>
        <dl class="keys">
          {keys.map(([key, meaning]) => (
            <>
              <dt key={`${key} key`}>
                <kbd>{key}</kbd>
              </dt>
              <dd key={key}>{meaning}</dd>
            </>
          ))}
        </dl>
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
      </div>
    </dialog>
  ) : null
