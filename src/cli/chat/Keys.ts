// Keys of a terminal in raw mode, decoded from what it sends: plain text, control keys, escape sequences of the usual
// kinds (CSI, SS3, kitty's `CSI … u`, xterm's `CSI 27;…~`) and bracketed paste, however it is cut into chunks. A paste is
// one key with all of its text, so that a line end in it never sends anything.

export interface NamedKey {
  readonly type: "key"
  /** `enter`, `escape`, `up`, …, or the letter that is pressed with Ctrl or Alt. */
  readonly name: string
  readonly ctrl: boolean
  readonly alt: boolean
  readonly shift: boolean
}

export type Key =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "paste"; readonly text: string; readonly isCut: boolean }
  | NamedKey

const escape = "\u001b"
const pasteStart = `${escape}[200~`
const pasteEnd = `${escape}[201~`
/** A message may have a mebibyte; what a terminal pastes beyond that is left out. */
export const pasteCharsMax = 1_000_000
/** No escape sequence of a key is longer. */
const sequenceCharsMax = 64

const plain = (name: string): NamedKey => ({ type: "key", name, ctrl: false, alt: false, shift: false })
const withCtrl = (name: string): NamedKey => ({ ...plain(name), ctrl: true })

const finals: Readonly<Record<string, string>> = {
  A: "up",
  B: "down",
  C: "right",
  D: "left",
  F: "end",
  H: "home",
  P: "f1",
  Q: "f2",
  R: "f3",
  S: "f4",
  Z: "tab"
}

const tildes: Readonly<Record<string, string>> = {
  1: "home",
  2: "insert",
  3: "delete",
  4: "end",
  5: "pageup",
  6: "pagedown",
  7: "home",
  8: "end"
}

const codes: Readonly<Record<number, string>> = {
  9: "tab",
  13: "enter",
  27: "escape",
  32: "space",
  127: "backspace",
  57414: "enter"
}

const controls: Readonly<Record<string, NamedKey>> = {
  "\r": plain("enter"),
  "\n": { ...plain("enter"), ctrl: false, alt: true },
  "\t": plain("tab"),
  "\u007f": plain("backspace"),
  "\b": plain("backspace"),
  "\u0000": withCtrl("space")
}

/** One plus the sum of shift 1, alt 2, ctrl 4, as terminals count. */
const modified = (key: NamedKey, modifiers: string | undefined): NamedKey => {
  const bits = Math.max(0, Number(modifiers?.split(":")[0] ?? 1) - 1)
  return { ...key, shift: key.shift || (bits & 1) !== 0, alt: (bits & 2) !== 0, ctrl: (bits & 4) !== 0 }
}

const keyOfCode = (code: number): NamedKey => {
  const named = codes[code]
  return plain(named ?? String.fromCodePoint(Math.min(code, 0x10_ffff)).toLowerCase())
}

const isPlainText = ({ alt, ctrl, name }: NamedKey): boolean => !alt && !ctrl && [...name].length === 1

/** A key of `CSI parameters final`; undefined for what is no key. */
const csiKey = (parameters: string, final: string): Key | undefined => {
  const [first = "", second, third] = parameters.split(";")
  if (final === "u" || (final === "~" && first === "27" && third !== undefined)) {
    const code = Number((final === "u" ? first : (third ?? "")).split(":")[0])
    if (!Number.isInteger(code) || code <= 0) return undefined
    const key = modified(keyOfCode(code), second)
    if (key.name === "space" && isPlainText({ ...key, name: " " })) return { type: "text", text: " " }
    return isPlainText(key) ? { type: "text", text: String.fromCodePoint(code) } : key
  }
  if (final === "~") {
    const name = tildes[first]
    return name === undefined ? undefined : modified(plain(name), second)
  }
  const name = finals[final]
  if (name === undefined) return undefined
  return modified({ ...plain(name), shift: final === "Z" }, second)
}

interface Taken {
  readonly key: Key | undefined
  readonly chars: number
}

const csi = new RegExp(`^${escape}\\[([0-9;:<=>?]*)[ -/]*([@-~])`)

/** The first key of an escape sequence; undefined when more of it has to come. */
const escapeKey = (text: string): Taken | undefined => {
  const next = text[1]
  if (next === undefined) return undefined
  if (next === "[") {
    const found = csi.exec(text)
    if (found !== null) return { key: csiKey(found[1] ?? "", found[2] ?? ""), chars: found[0].length }
    return text.length > sequenceCharsMax ? { key: undefined, chars: text.length } : undefined
  }
  if (next === "O") {
    const final = text[2]
    if (final === undefined) return undefined
    const name = finals[final]
    return { key: name === undefined ? undefined : plain(name), chars: 3 }
  }
  if (next === escape) return { key: plain("escape"), chars: 1 }
  const { chars, key } = plainKey(text.slice(1))
  return { key: key === undefined ? undefined : withAlt(key), chars: chars + 1 }
}

const withAlt = (key: Key): Key => {
  if (key.type === "key") return { ...key, alt: true }
  return key.type === "text" ? { ...plain(key.text.toLowerCase()), alt: true } : key
}

/** The first key of text that begins with no escape. */
const plainKey = (text: string): Taken => {
  const character = String.fromCodePoint(text.codePointAt(0) ?? 0)
  const known = controls[character]
  if (known !== undefined) return { key: known, chars: 1 }
  const code = character.codePointAt(0) ?? 0
  if (code < 0x20) return { key: withCtrl(String.fromCharCode(code + 0x60)), chars: 1 }
  return { key: { type: "text", text: character }, chars: character.length }
}

const textRun = /^\P{Cc}+/u

export class KeyDecoder {
  private waiting = ""
  private paste: string | undefined
  private isPasteCut = false

  /** An escape stands alone so far: it is a key of its own unless more follows at once. */
  get isPending(): boolean {
    return this.waiting !== "" && this.paste === undefined
  }

  feed(chunk: string): ReadonlyArray<Key> {
    this.waiting += chunk
    const keys: Array<Key> = []
    while (this.waiting !== "") {
      const isMore = this.paste === undefined ? this.takeKey(keys) : this.takePaste(keys)
      if (!isMore) break
    }
    return keys
  }

  /** Nothing followed: what waits is what it is. */
  flush(): ReadonlyArray<Key> {
    if (!this.isPending) return []
    const isEscape = this.waiting === escape
    this.waiting = ""
    return isEscape ? [plain("escape")] : []
  }

  private takeKey(keys: Array<Key>): boolean {
    if (this.waiting.startsWith(pasteStart)) {
      this.waiting = this.waiting.slice(pasteStart.length)
      this.paste = ""
      this.isPasteCut = false
      return true
    }
    const run = textRun.exec(this.waiting)?.[0]
    if (run !== undefined) {
      keys.push({ type: "text", text: run })
      this.waiting = this.waiting.slice(run.length)
      return true
    }
    const taken = this.waiting.startsWith(escape) ? escapeKey(this.waiting) : plainKey(this.waiting)
    if (taken === undefined) return false
    this.waiting = this.waiting.slice(taken.chars)
    if (taken.key !== undefined) keys.push(taken.key)
    return true
  }

  private takePaste(keys: Array<Key>): boolean {
    const end = this.waiting.indexOf(pasteEnd)
    // The end may be cut in two by the chunks.
    const kept = end >= 0 ? end : Math.max(0, this.waiting.length - pasteEnd.length)
    this.grow(this.waiting.slice(0, kept))
    this.waiting = this.waiting.slice(end >= 0 ? end + pasteEnd.length : kept)
    if (end < 0) return false
    keys.push({ type: "paste", text: (this.paste ?? "").replace(/\r\n?/g, "\n"), isCut: this.isPasteCut })
    this.paste = undefined
    return true
  }

  private grow(text: string): void {
    const room = pasteCharsMax - (this.paste?.length ?? 0)
    if (text.length > room) this.isPasteCut = true
    this.paste = `${this.paste ?? ""}${text.slice(0, Math.max(0, room))}`
  }
}
