// A real terminal for tests: a tmux server of the test's own, with one window of a given size.
import { spawnSync } from "node:child_process"
import { type Part, programRuns } from "./require.ts"

export const tmuxPart: Part = {
  name: "tmux",
  isThere: () => programRuns("tmux", ["-V"]),
  remedy: "apt-get install tmux"
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

let made = 0

export class Tmux {
  private readonly name: string

  constructor(
    name: string,
    size: { readonly columns: number; readonly rows: number },
    command: ReadonlyArray<string>,
    env: Readonly<Record<string, string>>
  ) {
    made += 1
    this.name = `${name}-${process.pid}-${made}`
    const variables = Object.entries(env).flatMap(([key, value]) => ["-e", `${key}=${value}`])
    // The shell must outlive the interrupt that is meant for the command.
    // A run that wants no colors for its own output must not take them from the terminal under test.
    const line = `unset NO_COLOR CI; trap : INT; ${command.map(quoted).join(" ")}; echo "exit $?"; sleep 600`
    const { columns, rows } = size
    this.tmux(
      "-f",
      "/dev/null",
      "new-session",
      "-d",
      "-x",
      String(columns),
      "-y",
      String(rows),
      ...variables,
      `exec sh -c ${quoted(line)}`
    )
  }

  private tmux(...args: ReadonlyArray<string>): string {
    const run = spawnSync("tmux", ["-L", this.name, ...args], { encoding: "utf8" })
    if (run.status !== 0) throw new Error(`tmux ${args[0]}: ${run.stderr}`)
    return run.stdout
  }

  /** What the window shows, without colors; with `history`, also what has scrolled out of it. */
  screen(options: { readonly colors?: boolean; readonly history?: boolean } = {}): string {
    return this.tmux(
      "capture-pane",
      "-p",
      ...(options.colors === true ? ["-e"] : []),
      ...(options.history === true ? ["-S", "-"] : [])
    )
  }

  press(...keys: ReadonlyArray<string>): void {
    this.tmux("send-keys", ...keys)
  }

  /** Pastes as a terminal does, in brackets where the program asked for them. */
  paste(text: string): void {
    const set = spawnSync("tmux", ["-L", this.name, "load-buffer", "-"], { encoding: "utf8", input: text })
    if (set.status !== 0) throw new Error(`tmux load-buffer: ${set.stderr}`)
    this.tmux("paste-buffer", "-p")
  }

  resize(columns: number, rows: number): void {
    this.tmux("resize-window", "-x", String(columns), "-y", String(rows))
  }

  isCursorShown(): boolean {
    return this.tmux("display-message", "-p", "#{cursor_flag}").trim() === "1"
  }

  end(): void {
    spawnSync("tmux", ["-L", this.name, "kill-server"])
  }
}
