// Gathers what is wrong with something that a model wrote, each with its place: told all at once.
import { limits } from "./GoalLimits.ts"

export type Checked<A> =
  | { readonly _tag: "Sound"; readonly value: A }
  | { readonly _tag: "Faulty"; readonly problems: ReadonlyArray<string> }

/** Gathers what is wrong, each with its place. */
export class Problems {
  readonly list: Array<string> = []

  add(where: string, problem: string): void {
    this.list.push(`${where}: ${problem}`)
  }

  text(where: string, value: unknown, charsMax: number = limits.taskTextCharsMax): string {
    if (typeof value !== "string" || value.trim() === "") this.add(where, "must be text")
    else if (value.length > charsMax) this.add(where, `is longer than ${charsMax} characters`)
    return typeof value === "string" ? value : ""
  }

  texts(where: string, value: unknown, max: number): ReadonlyArray<string> {
    if (value === undefined) return []
    if (!Array.isArray(value)) {
      this.add(where, "must be a list")
      return []
    }
    if (value.length > max) this.add(where, `has more than ${max} entries`)
    return value.slice(0, max).map((one, index) => this.text(`${where}[${index}]`, one))
  }

  checked<A>(value: A): Checked<A> {
    if (this.list.length === 0) return { _tag: "Sound", value }
    const rest = this.list.length - limits.problemsMax
    const shown = this.list.slice(0, limits.problemsMax)
    return { _tag: "Faulty", problems: rest > 0 ? [...shown, `and ${rest} more problems`] : shown }
  }
}
