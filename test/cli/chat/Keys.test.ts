// Goal: what a terminal sends is read as the keys that were pressed, however it is cut into chunks. Method: recorded
// sequences of xterm, kitty and tmux; a paste cut at every place.
import { describe, expect, it } from "vitest"
import { type Key, KeyDecoder, pasteCharsMax } from "#src/cli/chat/Keys.ts"
import { keyName } from "#src/cli/chat/LineEditor.ts"

const named = (keys: ReadonlyArray<Key>): ReadonlyArray<string> =>
  keys.map((key) => (key.type === "key" ? keyName(key) : `${key.type}:${key.text}`))

const decode = (...chunks: ReadonlyArray<string>): ReadonlyArray<string> => {
  const decoder = new KeyDecoder()
  return [...named(chunks.flatMap((chunk) => [...decoder.feed(chunk)])), ...named(decoder.flush())]
}

describe("keys", () => {
  it.each([
    ["a", ["text:a"]],
    ["héllo 世界 🙂", ["text:héllo 世界 🙂"]],
    ["\r", ["enter"]],
    ["\n", ["alt enter"]],
    ["\u001b\r", ["alt enter"]],
    ["\u001b[13;2u", ["shift enter"]],
    ["\u001b[27;2;13~", ["shift enter"]],
    ["\u001b[13;5u", ["ctrl enter"]],
    ["\u001b[27;5;13~", ["ctrl enter"]],
    ["\u0003", ["ctrl c"]],
    ["\u001b[99;5u", ["ctrl c"]],
    ["\u001b", ["escape"]],
    ["\u001b[27u", ["escape"]],
    ["\u001b[A", ["up"]],
    ["\u001bOB", ["down"]],
    ["\u001b[1;5C", ["ctrl right"]],
    ["\u001b[3~", ["delete"]],
    ["\u001b[Z", ["shift tab"]],
    ["\u001b[97u", ["text:a"]],
    ["\u001bb", ["alt b"]],
    ["\u007f", ["backspace"]],
    ["\u001b[<0;10;10M", []],
    ["\u001b[?62;22c", []],
    ["ab\u001b[Dc\r", ["text:ab", "left", "text:c", "enter"]]
  ])("%j is %j", (sent, expected) => {
    expect(decode(sent)).toEqual(expected)
    // One byte at a time, as a slow line brings it.
    const joined = decode(...sent)
      .join("|")
      .replaceAll("|text:", "")
    expect(joined.replace(/^text:/, "")).toBe(
      expected
        .join("|")
        .replaceAll("|text:", "")
        .replace(/^text:/, "")
    )
  })

  it("a paste is one key with every line of it, wherever it is cut", () => {
    const text = Array.from({ length: 200 }, (_, at) => `line ${at}\t{`).join("\n")
    const sent = `\u001b[200~${text.replaceAll("\n", "\r")}\u001b[201~x`
    for (let at = 1; at < sent.length; at += 7) {
      expect(decode(sent.slice(0, at), sent.slice(at))).toEqual([`paste:${text}`, "text:x"])
    }
  })

  it("a paste beyond what a message may have is cut and says so", () => {
    const [key] = new KeyDecoder().feed(`\u001b[200~${"x".repeat(pasteCharsMax + 5)}\u001b[201~`)
    expect(key).toMatchObject({ type: "paste", isCut: true })
    expect(key?.type === "paste" && key.text.length).toBe(pasteCharsMax)
  })
})
