// A view that is loaded when it is first shown, so that the first load of the page stays small.
import { signal } from "@preact/signals"
import type { FunctionComponent } from "preact"
import { Banner } from "./Bits.tsx"

export const lazy = <Props extends object = object>(
  load: () => Promise<FunctionComponent<Props>>
): FunctionComponent<Props> => {
  const loaded = signal<FunctionComponent<Props> | undefined>(undefined)
  const failure = signal("")
  let isAsked = false
  const ask = (): void => {
    isAsked = true
    load().then(
      (found) => {
        loaded.value = found
      },
      () => {
        isAsked = false
        failure.value = "This view could not be loaded. Load the page again."
      }
    )
  }
  return (props) => {
    const View = loaded.value
    if (View !== undefined) return <View {...props} />
    if (!isAsked) ask()
    return failure.value === "" ? <p class="empty quiet">Loading…</p> : <Banner tone="failure">{failure.value}</Banner>
  }
}
