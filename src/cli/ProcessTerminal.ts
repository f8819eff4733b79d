// The terminal of this process. Colours follow what the stream can show and what NO_COLOR and FORCE_COLOR ask for.
import { styleText } from "node:util"
import type { Terminal, Tone } from "./Verb.ts"

const styles: { readonly [T in Tone]: Parameters<typeof styleText>[0] } = {
  strong: "bold",
  quiet: "dim",
  good: "green",
  bad: "red"
}

export const processTerminal: Terminal = {
  write: (text) => void process.stdout.write(text),
  complain: (text) => void process.stderr.write(text),
  paint: (tone, text) => styleText(styles[tone], text, { stream: process.stdout }),
  interruption: () => {
    const controller = new AbortController()
    const abort = () => controller.abort()
    process.once("SIGINT", abort)
    process.once("SIGTERM", abort)
    return controller.signal
  }
}
