// Goal: the line being edited does what people expect of an editor, and its cursor never stands inside a character.
// Method: keys by name; random keys against the rule for the cursor.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { inputRows } from "#src/cli/chat/InputRows.ts"
import type { NamedKey } from "#src/cli/chat/Keys.ts"
import { continued, type Editing, edited, emptyEditing, inserted, withText } from "#src/cli/chat/LineEditor.ts"
import { seedFor } from "../../support/seed.ts"

const key = (name: string): NamedKey => {
  const words = name.split(" ")
  return {
    type: "key",
    name: words.at(-1) ?? "",
    ctrl: words.includes("ctrl"),
    alt: words.includes("alt"),
    shift: words.includes("shift")
  }
}

const pressed = (state: Editing, names: ReadonlyArray<string>, history: ReadonlyArray<string> = []): Editing =>
  names.reduce((one, name) => edited(one, key(name), history) ?? one, state)

describe("the line editor", () => {
  it("moves, deletes and inserts by character, word and line", () => {
    const text = withText("one two\nthree")
    expect(pressed(text, ["ctrl w"]).text).toBe("one two\n")
    expect(pressed(text, ["up", "ctrl u"]).text).toBe("wo\nthree")
    expect(pressed(text, ["home", "backspace"]).text).toBe("one twothree")
    expect(pressed(text, ["up", "ctrl k"]).text).toBe("one t\nthree")
    expect(pressed(text, ["alt left", "alt left", "delete"]).text).toBe("one wo\nthree")
    expect(inserted(pressed(text, ["ctrl a"]), "> ").text).toBe("one two\n> three")
  })

  it("takes a character of several code points as one", () => {
    expect(pressed(withText("a👩‍👩‍👧é"), ["left", "backspace"]).text).toBe("aé")
  })

  it("begins a new line for Shift-Enter, Alt-Enter and a backslash at the end", () => {
    expect(pressed(withText("a"), ["shift enter", "alt enter"]).text).toBe("a\n\n")
    expect(continued(withText("a\\"))?.text).toBe("a\n")
    expect(continued(withText("a"))).toBeUndefined()
  })

  it("finds earlier messages and keeps the draft", () => {
    const history = ["first", "second\nline"]
    const draft = withText("draft")
    expect(pressed(draft, ["up"], history).text).toBe("second\nline")
    expect(pressed(draft, ["up", "up", "up"], history).text).toBe("first")
    expect(pressed(draft, ["up", "up", "up", "down", "down", "down"], history).text).toBe("draft")
  })

  it("keeps the cursor inside the text and inside the window for any keys", () => {
    const names = [
      "left",
      "right",
      "up",
      "down",
      "home",
      "end",
      "backspace",
      "delete",
      "ctrl w",
      "ctrl u",
      "ctrl k",
      "alt b",
      "alt f",
      "shift enter",
      "alt d"
    ]
    const step = fc.oneof(
      fc.constantFrom(...names),
      fc.string({ maxLength: 5, unit: "grapheme" }).map((text) => `+${text}`)
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 10, max: 60 }), (steps, columns) => {
        let state = emptyEditing
        for (const one of steps) {
          state = one.startsWith("+") ? inserted(state, one.slice(1)) : (edited(state, key(one), ["old"]) ?? state)
          expect(state.cursor).toBeGreaterThanOrEqual(0)
          expect(state.cursor).toBeLessThanOrEqual(state.text.length)
          const { cursor, rows } = inputRows({ prompt: "› ", promptColumns: 2, ...state, columns, rowsMax: 5 })
          expect(rows.length).toBeLessThanOrEqual(7)
          expect(rows[cursor.row]).toBeDefined()
          expect(cursor.column).toBeLessThan(columns)
        }
      }),
      { seed: seedFor("line editor") }
    )
  })
})
