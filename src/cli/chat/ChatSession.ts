// A chat at a terminal: reads keys, follows the conversation, and draws both. Enter sends, or queues while a turn runs;
// Ctrl-Enter steers it; Esc or Ctrl-C stops it and keeps what was said; Ctrl-C twice leaves. The conversation lives on the
// server: leaving does not end it, and a restart of the server only pauses what is shown.
import { type Client, type ConnectionChange, RequestFailed } from "../../client/Client.ts"
import { fitStart } from "../render/Text.ts"
import { type ExitCode, exitCode, type Keyboard, type Terminal } from "../Verb.ts"
import type { ChatCommands } from "./ChatCommands.ts"
import type { ChatView } from "./ChatView.ts"
import { commandList, commandNamed } from "./Commands.ts"
import { type Completion, complete, isImage, mentions, shownMax } from "./Completion.ts"
import { Decisions } from "./Decisions.ts"
import { inputRows } from "./InputRows.ts"
import { type Key, KeyDecoder, type NamedKey, pasteCharsMax } from "./Keys.ts"
import { continued, type Editing, edited, emptyEditing, inserted, keyName, withText } from "./LineEditor.ts"
import { type Bottom, Painter } from "./Painter.ts"

/** What the chat reads and writes on this machine. */
export interface ChatFiles {
  readonly history: ReadonlyArray<string>
  readonly remember: (text: string) => void
  readonly files: () => ReadonlyArray<string>
  readonly editText: (text: string) => { readonly text: string } | { readonly issue: string }
  /** Bytes of a file that a message names; rejects with the reason it cannot be read. */
  readonly readFile: (path: string) => Promise<Uint8Array>
}

export interface ChatOptions {
  readonly client: Client
  readonly terminal: Terminal
  readonly keyboard: Keyboard
  readonly conversationId: string
  readonly view: ChatView
  readonly files: ChatFiles
  /** The last event that is shown already. */
  readonly after: number
  readonly nowMs: () => number
}

const frameMs = 33
const tickMs = 250
/** A lone escape byte is the key Esc when nothing follows within this time. */
const escapeMs = 30
const historyMax = 1_000

export class ChatSession {
  readonly options: ChatOptions
  private readonly painter: Painter
  private readonly decoder = new KeyDecoder()
  private readonly decisions: Decisions
  private readonly leaving = new AbortController()
  private readonly history: Array<string>
  private editing: Editing = emptyEditing
  /** What was being written when a question came up. */
  private draft: Editing | undefined
  private staying: Array<string> = []
  private isArmed = false
  private selected = 0
  private notice: string | undefined
  private isAway = false
  private frame: NodeJS.Timeout | undefined
  private escapeTimer: NodeJS.Timeout | undefined
  private fileNames: ReadonlyArray<string> | undefined
  private lastEventId: number
  private exit: ExitCode = exitCode.done

  constructor(options: ChatOptions) {
    this.options = options
    this.history = [...options.files.history]
    this.painter = new Painter(options.terminal)
    this.lastEventId = options.after
    const complain = (text: string): void => this.print([text.trimEnd()])
    this.decisions = new Decisions(options.client, options.conversationId, { ...options.terminal, complain })
  }

  async run(): Promise<ExitCode> {
    const { keyboard, view } = this.options
    keyboard.onInput((text) => this.input(text))
    keyboard.onResize(() => this.paint())
    const ticking = setInterval(() => view.isWorking && this.paint(), tickMs)
    try {
      await this.decisions.refresh()
      this.showQuestion()
      this.paint()
      await this.follow()
    } finally {
      clearInterval(ticking)
      clearTimeout(this.frame)
      clearTimeout(this.escapeTimer)
      this.painter.paint(this.staying.splice(0), { rows: [""], cursor: { row: 0, column: 0 } })
      keyboard.release()
    }
    return this.exit
  }

  /** Rows that stay, above what is being edited. */
  print(rows: ReadonlyArray<string>): void {
    this.staying.push(...rows)
    this.schedule()
  }

  leave(code: ExitCode): void {
    this.exit = code
    this.leaving.abort()
  }

  connection(change: ConnectionChange): void {
    const { paint } = this.options.terminal
    if (change.type === "lost") {
      if (!this.isAway) this.print([paint("notice", "— connection lost, reconnecting; what you type counts —")])
      this.isAway = true
    } else if (this.isAway) {
      this.isAway = false
      this.print([paint("notice", `— connected again, resumed at rune ${this.lastEventId} —`)])
    }
  }

  private async follow(): Promise<void> {
    const { after, client, conversationId, view } = this.options
    const { signal } = this.leaving
    for await (const item of client.tail(conversationId, { after, live: true, signal })) {
      if ("live" in item) this.print(view.live(item.live))
      if (!("rune" in item)) continue
      const { rune } = item
      this.lastEventId = rune.event_id
      this.print(view.rune(rune))
      const callId = String((rune.payload as { readonly call_id?: unknown }).call_id)
      if (rune.kind === "tool.approval_requested") await this.decisions.refresh()
      if (/^tool\.(approved|denied|result)$/.test(rune.kind)) this.decisions.forget(callId)
      if (rune.kind.startsWith("tool.")) this.showQuestion()
    }
  }

  /** Puts the next question in the place of the draft, or the draft back. */
  private showQuestion(): void {
    if (this.decisions.isAsking && this.draft === undefined) {
      this.draft = this.editing
      this.editing = emptyEditing
      this.options.terminal.write("\u0007")
    } else if (!this.decisions.isAsking && this.draft !== undefined) {
      this.editing = this.draft
      this.draft = undefined
    }
    this.print(this.decisions.nextRows())
  }

  private input(text: string): void {
    clearTimeout(this.escapeTimer)
    this.take(this.decoder.feed(text))
    if (this.decoder.isPending)
      this.escapeTimer = setTimeout(() => {
        this.take(this.decoder.flush())
        this.paint()
      }, escapeMs)
    this.paint()
  }

  private take(keys: ReadonlyArray<Key>): void {
    for (const key of keys) {
      if (key.type === "key") this.press(key)
      else this.insert(key)
    }
  }

  private insert(key: Exclude<Key, NamedKey>): void {
    this.isArmed = false
    this.selected = 0
    this.notice = undefined
    this.editing = inserted(this.editing, key.text)
    if (key.type === "paste" && key.isCut)
      this.notice = `the paste was cut to ${pasteCharsMax.toLocaleString("en-US")} characters`
  }

  private press(key: NamedKey): void {
    const name = keyName(key)
    const isInterrupt = name === "ctrl c"
    if (!isInterrupt) this.isArmed = false
    this.notice = undefined
    const action = this.keyActions[name]
    if (action?.() === true) return
    const isMenu = this.completion.candidates.length > 0 && (name === "up" || name === "down")
    if (isMenu) {
      const count = this.completion.candidates.length
      this.selected = (this.selected + (name === "up" ? count - 1 : 1)) % count
      return
    }
    this.selected = 0
    this.editing = edited(this.editing, key, this.history) ?? this.editing
  }

  /** Keys that mean something for the chat; true when that is all they mean. */
  private readonly keyActions: Readonly<Record<string, () => boolean>> = {
    enter: () => this.enter("queue"),
    "ctrl enter": () => this.enter("steer"),
    tab: () => this.acceptCandidate(),
    escape: () => this.stop(),
    "ctrl c": () => this.interrupt(),
    "ctrl d": () => this.editing.text === "" && this.leaveNow(exitCode.done),
    "ctrl l": () => this.redraw(),
    "ctrl g": () => this.edit()
  }

  private leaveNow(code: ExitCode): true {
    this.leave(code)
    return true
  }

  private redraw(): true {
    this.options.terminal.write("\u001b[2J\u001b[H")
    return true
  }

  private get completion(): Completion {
    if (this.decisions.isAsking) return { from: 0, candidates: [] }
    const { cursor, text } = this.editing
    return complete(text, cursor, {
      commands: commandList,
      files: () => (this.fileNames ??= this.options.files.files())
    })
  }

  private acceptCandidate(): true {
    const { candidates, from } = this.completion
    const chosen = candidates[this.selected % Math.max(1, candidates.length)]
    if (chosen === undefined) return true
    const { cursor, text } = this.editing
    const before = `${text.slice(0, from)}${chosen.name} `
    this.editing = { ...withText(`${before}${text.slice(cursor)}`), cursor: before.length }
    this.selected = 0
    return true
  }

  private interrupt(): true {
    if (this.isArmed) return this.leaveNow(exitCode.interrupted)
    this.isArmed = true
    if (this.options.view.isWorking) this.stop()
    else if (this.editing.text !== "") this.editing = emptyEditing
    return true
  }

  private stop(): true {
    const { client, conversationId, view } = this.options
    if (!view.isWorking) return true
    this.notice = "stopping…"
    void this.trying(async () => {
      await client.call("turn.interrupt", { conversation_id: conversationId, reason: "stopped at the terminal" })
      this.notice = undefined
    })
    return true
  }

  private edit(): true {
    const { files, keyboard } = this.options
    this.painter.clear()
    keyboard.release()
    const result = files.editText(this.editing.text)
    keyboard.take()
    if ("issue" in result) this.notice = result.issue
    else this.editing = withText(result.text)
    return true
  }

  private enter(mode: "queue" | "steer"): true {
    const more = continued(this.editing)
    if (more !== undefined) {
      this.editing = more
      return true
    }
    const { text } = this.editing
    if (this.decisions.isAsking) {
      this.editing = emptyEditing
      void this.trying(async () => {
        this.print(await this.decisions.answer(text))
        this.showQuestion()
      })
      return true
    }
    if (text.trim() === "") return true
    this.editing = emptyEditing
    this.remember(text)
    void this.trying(() => (text.startsWith("/") ? this.command(text) : this.send(text, mode)))
    return true
  }

  private remember(text: string): void {
    if (this.history.at(-1) === text) return
    this.history.push(text)
    if (this.history.length > historyMax) this.history.shift()
    this.options.files.remember(text)
  }

  async send(text: string, mode: "queue" | "steer"): Promise<void> {
    const { client, conversationId, files } = this.options
    const images = mentions(text).filter(isImage)
    const parts = []
    for (const path of images)
      parts.push({ type: "image" as const, blob: await client.upload(await files.readFile(path)) })
    const content = parts.length === 0 ? text : [{ type: "text" as const, text }, ...parts]
    await client.call("message.post", { conversation_id: conversationId, content, mode })
  }

  private async command(text: string): Promise<void> {
    const { paint } = this.options.terminal
    const [, name = "", rest = ""] = /^\/([\w-]*)\s*([\s\S]*)$/.exec(text) ?? []
    const command = commandNamed(name)
    this.print([
      "",
      `${paint("accent", "›")} ${paint("strong", fitStart(text.split("\n")[0] ?? "", this.options.terminal.columns() - 3))}`
    ])
    if (typeof command === "string") return this.print([`  ${paint("bad", command)}`])
    this.print(await command.run(this.commands, rest.trim()))
  }

  private readonly commands: ChatCommands = {
    client: () => this.options.client,
    conversationId: () => this.options.conversationId,
    terminal: () => this.options.terminal,
    lastOutput: () => this.options.view.lastOutput,
    send: (text, mode) => this.send(text, mode),
    leave: () => this.leave(exitCode.done),
    stop: () => void this.stop(),
    edit: () => void this.edit()
  }

  /** What the server refuses is said, and the chat stays. */
  private async trying(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (this.leaving.signal.aborted) return
      const { paint } = this.options.terminal
      const reason = error instanceof Error ? error.message : String(error)
      const isQuiet = error instanceof RequestFailed && error.code === "invalid_state" && this.notice === "stopping…"
      this.notice = undefined
      if (!isQuiet) this.print([`  ${paint("bad", "✗")} ${reason}`])
    }
    this.paint()
  }

  private schedule(): void {
    this.frame ??= setTimeout(() => this.paint(), frameMs)
  }

  private paint(): void {
    clearTimeout(this.frame)
    this.frame = undefined
    if (this.leaving.signal.aborted) return
    this.painter.paint(this.staying.splice(0), this.bottom())
  }

  private bottom(): Bottom {
    const { nowMs, terminal, view } = this.options
    const { columns, paint, rows } = terminal
    const now = nowMs()
    const status = fitStart(view.status(now), columns() - 5)
    const rest = Math.max(0, columns() - 4 - status.length)
    const above = [...view.unsettled(now), paint("quiet", `─ ${status} ${"─".repeat(rest)}`)]
    const question = this.decisions.isAsking ? this.decisions.question : ""
    const prompt = question === "" ? "› " : `? ${question}`
    const input = inputRows({
      prompt: paint(question === "" ? "accent" : "notice", prompt),
      promptColumns: Math.min(prompt.length, columns() - 10),
      text: this.editing.text,
      cursor: this.editing.cursor,
      columns: columns(),
      rowsMax: Math.floor(rows() / 3)
    })
    return {
      rows: [...above, ...input.rows, ...this.below()],
      cursor: { row: above.length + input.cursor.row, column: input.cursor.column }
    }
  }

  /** Completions, a notice, or what the keys do. */
  private below(): ReadonlyArray<string> {
    const { columns, paint } = this.options.terminal
    const { candidates } = this.completion
    if (candidates.length > 0) {
      const selected = this.selected % candidates.length
      const first = Math.max(0, Math.min(selected - shownMax + 1, candidates.length - shownMax))
      return candidates.slice(first, first + shownMax).map(({ about, name }, at) => {
        const row = fitStart(`  ${name}${about === "" ? "" : `  ${about}`}`, columns() - 1)
        return first + at === selected ? paint("accent", row) : paint("quiet", row)
      })
    }
    return [paint("quiet", fitStart(`  ${this.notice ?? this.hint()}`, columns() - 1))]
  }

  private hint(): string {
    const { view } = this.options
    if (this.isArmed) return "Ctrl-C again leaves; the conversation stays"
    if (this.decisions.isAsking) return "anything but a yes refuses, and is recorded as the reason   Esc stops the turn"
    if (view.isWorking) return "⏎ queue   Ctrl-⏎ or /steer now   Esc stop   Ctrl-C twice leave"
    return "⏎ send   ⇧⏎ new line   @ file   / commands   Ctrl-G editor   Ctrl-C twice leave"
  }
}
