// `@path` in an instruction file: another file that belongs to it. Only words outside of code count, and only files that
// lie in the same root: a path or a link that leads out of it is named and not followed.
import { dirname, isAbsolute, join, normalize } from "node:path"
import { limits } from "./PromptLimits.ts"
import type { InstructionRoot } from "./Root.ts"

const fence = /^\s*(?:```|~~~)/u
const codeSpan = /`[^`]*`/gu
const imported = /(?<=^|\s)@([^\s`]+)/gu
const trailing = /[.,;:!?)\]}'"]+$/u

/** The paths that a text imports, in order, each once. */
export const importsIn = (text: string): ReadonlyArray<string> => {
  const found = new Set<string>()
  let isCode = false
  for (const line of text.split("\n")) {
    if (fence.test(line)) isCode = !isCode
    else if (!isCode)
      for (const [, path = ""] of line.replaceAll(codeSpan, "").matchAll(imported))
        found.add(path.replace(trailing, ""))
  }
  return [...found].filter((path) => path !== "")
}

interface Expansion {
  readonly root: InstructionRoot
  readonly seen: Set<string>
  readonly sections: Array<string>
  readonly refused: Array<string>
}

/** A word after `@` may be a person or a package: only what looks like a file is missed when it is not imported. */
const isPath = (word: string): boolean => /[/.]/u.test(word)

const refuse = ({ refused }: Expansion, path: string, reason: string): void => {
  if (isPath(path) && refused.length < limits.importsMax) refused.push(`[@${path} is not imported: ${reason}]`)
}

const follow = async (expansion: Expansion, text: string, from: string, depth: number): Promise<void> => {
  const { root, seen, sections } = expansion
  for (const path of importsIn(text)) {
    if (depth > limits.importDepthMax || sections.length >= limits.importsMax) {
      refuse(expansion, path, "there are too many imports, or it is imported too deep")
      continue
    }
    const found = await root.read(isAbsolute(path) ? path : normalize(join(dirname(from), path)))
    if (found._tag === "Refused") refuse(expansion, path, found.reason)
    if (found._tag !== "File" || seen.has(found.shown)) continue
    seen.add(found.shown)
    sections.push(`### ${root.nameOf(found.shown)}\n\n${found.text}`)
    await follow(expansion, found.text, found.shown, depth + 1)
  }
}

/** An instruction file, then what it imports; nothing when there is no such file, or it is among those seen. */
export const expand = async (root: InstructionRoot, path: string, seen: Set<string>): Promise<string | undefined> => {
  const found = await root.read(path)
  if (found._tag !== "File" || seen.has(found.shown)) return undefined
  seen.add(found.shown)
  const expansion: Expansion = { root, seen, sections: [], refused: [] }
  await follow(expansion, found.text, found.shown, 1)
  return [found.text, ...expansion.sections, ...expansion.refused].join("\n\n")
}
