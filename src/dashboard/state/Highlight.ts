// Colors for code: comments, strings, numbers and common words, the same for every language. Good enough to read by, and
// never wrong about the text itself: the pieces joined are the code.

export interface CodePiece {
  readonly kind: "comment" | "string" | "number" | "word" | "plain"
  readonly text: string
}

const pattern =
  /(\/\/[^\n]*|#[^\n{[]*|\/\*[\s\S]*?\*\/|--[^\n]*)|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)|\b(\d[\w.]*)\b|\b(?:(async|await|break|case|catch|class|const|continue|def|default|do|done|elif|else|enum|esac|except|export|extends|false|fi|finally|fn|for|from|func|function|if|impl|import|in|interface|let|match|mod|mut|new|nil|None|null|of|package|pass|pub|raise|return|self|static|struct|super|switch|then|this|throw|trait|True|False|true|try|type|undefined|use|var|void|while|with|yield)\b)/g

/** Longer code is shown without colors. */
const charsMax = 50_000

export const highlight = (code: string): ReadonlyArray<CodePiece> => {
  if (code.length > charsMax) return [{ kind: "plain", text: code }]
  const pieces: Array<CodePiece> = []
  let at = 0
  for (const match of code.matchAll(pattern)) {
    if (match.index > at) pieces.push({ kind: "plain", text: code.slice(at, match.index) })
    const kind =
      match[1] !== undefined
        ? "comment"
        : match[2] !== undefined
          ? "string"
          : match[3] !== undefined
            ? "number"
            : "word"
    pieces.push({ kind, text: match[0] })
    at = match.index + match[0].length
  }
  if (at < code.length) pieces.push({ kind: "plain", text: code.slice(at) })
  return pieces
}
