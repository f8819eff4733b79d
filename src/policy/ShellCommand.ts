// Reads a shell command line as far as it says exactly what will run: words, quotes, and the operators between
// commands. Everything whose meaning depends on more than the text itself (variables, substitutions, patterns of file
// names, files written to, definitions) is not understood, and says why; nothing is ever guessed.
import { elementAt, valueAt } from "../rune/Elements.ts"
import { policyLimits } from "./PolicyLimits.ts"

export const operators = ["&&", "||", ";", "|"] as const
export type Operator = (typeof operators)[number]

/** A program and its arguments, as the program would find them. */
export type SimpleCommand = ReadonlyArray<string>

export interface CommandLine {
  readonly commands: readonly [SimpleCommand, ...ReadonlyArray<SimpleCommand>]
  /** What stands between them; always one fewer than there are commands. */
  readonly operators: ReadonlyArray<Operator>
}

export type ParsedCommand =
  | { readonly _tag: "Understood"; readonly line: CommandLine }
  | { readonly _tag: "NotUnderstood"; readonly why: string }

const notUnderstood = (why: string): ParsedCommand => ({ _tag: "NotUnderstood", why })

/** Words that begin something else than a command, or that make later words mean something else. */
const reserved: ReadonlySet<string> = new Set([
  ..."! { } [[ ]] if then else elif fi do done case esac while until for select in function time coproc".split(" "),
  ..."eval exec source . alias unalias export declare typeset local readonly unset set shopt trap enable hash".split(
    " "
  ),
  ..."builtin command let read mapfile readarray".split(" ")
])

/** Redirections that touch no file: output joined to output, or thrown away. */
const harmlessRedirections = ["2>&1", "1>&2", ">&2", "2>/dev/null", "1>/dev/null", ">/dev/null"] as const

/** Why these characters, outside quotes, end the reading. */
const special: Readonly<Record<string, string>> = {
  $: "it expands a variable or a substitution",
  "`": "it substitutes the output of a command",
  "*": "it matches names of files",
  "?": "it matches names of files",
  "[": "it matches names of files",
  "]": "it matches names of files",
  "(": "it groups commands",
  ")": "it groups commands",
  "{": "it groups commands or expands braces",
  "}": "it groups commands or expands braces",
  "<": "it redirects input",
  ">": "it redirects output",
  "&": "it runs something in the background",
  "\n": "it has more than one line",
  "\r": "it has more than one line"
}

const isBlank = (character: string | undefined): boolean => character === " " || character === "\t"

/** Characters that a person cannot see, or that change how others are seen. */
const isInvisible = (code: number): boolean =>
  (code < 0x20 && code !== 0x09 && code !== 0x0a) ||
  (code >= 0x7f && code <= 0x9f) ||
  code === 0xad ||
  (code >= 0x200b && code <= 0x200f) ||
  (code >= 0x2028 && code <= 0x202e) ||
  (code >= 0x2060 && code <= 0x206f) ||
  code === 0xfeff ||
  (code >= 0xd800 && code <= 0xdfff)

const hasInvisible = (text: string): boolean => {
  if (/^[\t\n\x20-\x7e]*$/.test(text)) return false
  for (const character of text) if (isInvisible(character.codePointAt(0) ?? 0)) return true
  return false
}

/** What keeps a line from being read, thrown from wherever it is found. */
class Unreadable {
  readonly why: string

  constructor(why: string) {
    this.why = why
  }
}

class Scanner {
  private readonly text: string
  private at = 0
  private readonly commands: Array<Array<string>> = [[]]
  private readonly between: Array<Operator> = []
  private words = 0

  constructor(text: string) {
    this.text = text
  }

  line(): CommandLine {
    for (this.skipBlanks(); this.at < this.text.length; this.skipBlanks()) {
      const operator = operators.find((one) => this.text.startsWith(one, this.at))
      if (operator !== undefined) this.operator(operator)
      else if (!this.skipRedirection()) this.word()
    }
    if (this.current.length === 0)
      throw new Unreadable(this.between.length === 0 ? "it is empty" : "a command is missing")
    const [first = [], ...rest] = this.commands
    return { commands: [first, ...rest], operators: this.between }
  }

  private get current(): Array<string> {
    return elementAt(this.commands, this.commands.length - 1)
  }

  private skipBlanks(): void {
    while (isBlank(this.text[this.at])) this.at += 1
  }

  private operator(operator: Operator): void {
    const next = this.text[this.at + operator.length]
    if (next === "&" || next === "|" || next === ";") throw new Unreadable("it has an operator that is not known")
    if (this.current.length === 0) throw new Unreadable("a command is missing")
    this.at += operator.length
    this.between.push(operator)
    this.commands.push([])
  }

  private isEndOfWord(at: number): boolean {
    const character = this.text[at]
    return character === undefined || isBlank(character) || character === ";" || character === "|"
  }

  private skipRedirection(): boolean {
    const found = harmlessRedirections.find(
      (one) => this.text.startsWith(one, this.at) && this.isEndOfWord(this.at + one.length)
    )
    if (found === undefined) return false
    this.at += found.length
    return true
  }

  private word(): void {
    const start = this.at
    let value = ""
    if (this.text[start] === "#") throw new Unreadable("it has a comment")
    if (this.text[start] === "~") throw new Unreadable("it names a home directory")
    while (!this.isEndOfWord(this.at) && !this.text.startsWith("&&", this.at)) value += this.piece()
    this.words += 1
    if (this.words > policyLimits.commandWordsMax) throw new Unreadable("it has too many words")
    if (this.current.length === 0) this.checkProgram(value, this.text.slice(start, this.at))
    this.current.push(value)
  }

  private piece(): string {
    const character = this.text.charAt(this.at)
    this.at += 1
    if (character === "'") return this.singleQuoted()
    if (character === '"') return this.doubleQuoted()
    if (character === "\\") return this.escaped()
    const why = special[character]
    if (why !== undefined) throw new Unreadable(why)
    if (character === "~" && this.isInAssignment()) throw new Unreadable("it names a home directory")
    return character
  }

  /** Bash puts the home directory also behind `=` and `:` of words that look like assignments, wherever they stand. */
  private isInAssignment(): boolean {
    const before = this.text[this.at - 2]
    return before === "=" || before === ":"
  }

  private escaped(): string {
    const next = this.text[this.at]
    if (next === undefined || next === "\n") throw new Unreadable("it goes on in another line")
    this.at += 1
    return next
  }

  private singleQuoted(): string {
    const end = this.text.indexOf("'", this.at)
    if (end === -1) throw new Unreadable("a quote is not closed")
    const value = this.text.slice(this.at, end)
    this.at = end + 1
    return value
  }

  private doubleQuoted(): string {
    let value = ""
    for (;;) {
      const character = this.text[this.at]
      this.at += 1
      if (character === undefined) throw new Unreadable("a quote is not closed")
      if (character === '"') return value
      if (character === "$" || character === "`") throw new Unreadable(valueAt(special, character))
      value += character === "\\" ? this.escapedInQuotes() : character
    }
  }

  private escapedInQuotes(): string {
    const next = this.text[this.at]
    if (next === "\n") throw new Unreadable("it goes on in another line")
    if (next === undefined || !'"\\$`'.includes(next)) return "\\"
    this.at += 1
    return next
  }

  private checkProgram(program: string, written: string): void {
    if (program === "") throw new Unreadable("its program has no name")
    if (/^[A-Za-z_][A-Za-z0-9_]*\+?=/.test(written)) throw new Unreadable("it sets a variable")
    if (reserved.has(program)) throw new Unreadable(`"${program}" makes what follows mean something else`)
  }
}

/** What a command line runs, or why that cannot be told from its text. */
export const parseCommand = (text: string): ParsedCommand => {
  if (text.length > policyLimits.commandCharsMax) return notUnderstood("it is too long")
  if (hasInvisible(text)) return notUnderstood("it has characters that cannot be seen")
  try {
    return { _tag: "Understood", line: new Scanner(text).line() }
  } catch (error) {
    if (error instanceof Unreadable) return notUnderstood(error.why)
    throw error
  }
}

/** The name of a program without the directory it is in. */
export const programName = (program: string): string => program.slice(program.lastIndexOf("/") + 1)
