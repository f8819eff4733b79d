// Goes through the files of a workspace and matches their lines, one file in memory at a time.

import { open } from "node:fs/promises"
import { elementAt } from "../../../rune/Elements.ts"
import { ToolFailure } from "../BuiltinErrors.ts"
import { builtinLimits } from "../BuiltinLimits.ts"
import { isBinary } from "../files/Bytes.ts"
import { makeGlob } from "../files/Glob.ts"
import { emptyTally, walkTree } from "../files/Tree.ts"
import { readFlags } from "../Workspace.ts"
import { expressionOf } from "./Expression.ts"
import { Gathered, shownText } from "./Gather.ts"
import type { SearchRequest, SearchResult } from "./Port.ts"

/** Text of a file that is worth searching; nothing when it is large, no text, or gone. */
const textOf = async (at: string): Promise<string | undefined> => {
  const file = await open(at, readFlags).catch(() => undefined)
  if (file === undefined) return undefined
  try {
    const facts = await file.stat()
    if (!facts.isFile() || facts.size > builtinLimits.searchFileBytesMax) return undefined
    const bytes = await file.readFile()
    return isBinary(bytes) ? undefined : bytes.toString("utf8")
  } catch {
    return undefined
  } finally {
    await file.close()
  }
}

class Scan {
  private readonly request: SearchRequest
  private readonly expression: RegExp
  private readonly gathered: Gathered

  constructor(request: SearchRequest) {
    this.request = request
    this.expression = expressionOf(request.pattern, request)
    this.gathered = new Gathered(request.matchesMax)
  }

  async run(): Promise<SearchResult> {
    const { path, workspace } = this.request
    return workspace.locate(path === "" ? "." : path, { for: "reading" }, async (located) => {
      if (located.kind === "directory") return this.directory(path, located.at)
      if (located.kind !== "file") throw new ToolFailure("file_error", `${path}: there is no such file`)
      await this.file(located.shown, located.at)
      return this.gathered.result()
    })
  }

  private async directory(directory: string, at: string): Promise<SearchResult> {
    const { globs, includeIgnored, workspace } = this.request
    const wanted = globs.map(makeGlob)
    const tally = emptyTally()
    const depthMax = builtinLimits.walkDepthMax
    for await (const entry of walkTree({ workspace, directory, at, depthMax, includeIgnored }, tally)) {
      const isWanted = wanted.length === 0 || wanted.some((glob) => glob.matches(entry.path))
      if (entry.kind === "file" && isWanted && !(await this.file(entry.path, entry.at))) break
    }
    return this.gathered.result({ isCut: tally.isCut })
  }

  /** Whether more is wanted. */
  private async file(path: string, at: string): Promise<boolean> {
    const text = await textOf(at)
    if (text === undefined) return true
    const lines = text.split("\n")
    if (lines.at(-1) === "") lines.pop()
    const { contextLines } = this.request
    let shown = -1
    for (let index = 0; index < lines.length; index += 1) {
      if (!this.expression.test(withoutReturn(elementAt(lines, index)))) continue
      for (let near = Math.max(shown + 1, index - contextLines); near < index; near += 1)
        this.add(path, lines, near, { isMatch: false })
      if (!this.add(path, lines, index, { isMatch: true })) return false
      shown = index
      const end = Math.min(lines.length - 1, index + contextLines)
      for (
        let near = index + 1;
        near <= end && !this.expression.test(withoutReturn(elementAt(lines, near)));
        near += 1
      ) {
        this.add(path, lines, near, { isMatch: false })
        shown = near
      }
    }
    return true
  }

  private add(
    path: string,
    lines: ReadonlyArray<string>,
    index: number,
    { isMatch }: { readonly isMatch: boolean }
  ): boolean {
    return this.gathered.add({ path, line: index + 1, text: shownText(elementAt(lines, index)), isMatch })
  }
}

const withoutReturn = (line: string): string => (line.endsWith("\r") ? line.slice(0, -1) : line)

export const scan = (request: SearchRequest): Promise<SearchResult> => new Scan(request).run()
