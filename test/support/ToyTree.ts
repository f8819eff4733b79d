// A copy of the source tree in which a test follows a recipe of CONTRIBUTING: its code blocks are put where the recipe
// says, the compiler is asked, and the result is run.
import { spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { codeBlocks } from "../docs/Markdown.ts"
import { top } from "../tidy/Source.ts"

/** The code blocks under a heading of CONTRIBUTING. */
export const recipe = (heading: string): ReadonlyArray<string> => {
  const [, after = ""] = readFileSync(join(top, "CONTRIBUTING.md"), "utf8").split(`## ${heading}\n`)
  return codeBlocks(after.split("\n## ")[0] ?? "").map(({ text }) => text)
}

export class ToyTree {
  readonly path: string

  constructor(...also: ReadonlyArray<string>) {
    this.path = mkdtempSync(join(tmpdir(), "echs-toy-"))
    for (const name of ["src", "runelog", "package.json", "tsconfig.json", ...also]) {
      cpSync(join(top, name), join(this.path, name), { recursive: true })
    }
    symlinkSync(join(top, "node_modules"), join(this.path, "node_modules"))
  }

  read(file: string): string {
    return readFileSync(join(this.path, file), "utf8")
  }

  write(file: string, text = ""): void {
    writeFileSync(join(this.path, file), text)
  }

  /** Replaces the only occurrence of a text. */
  replace(file: string, text: string, by = ""): void {
    const parts = this.read(file).split(text)
    if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times ${text}`)
    this.write(file, parts.join(by))
  }

  /** Puts text after the first line that ends with `line`. */
  insertAfter(file: string, line: string, text = ""): void {
    const before = this.read(file)
    const at = before.indexOf(`${line}\n`)
    if (at < 0) throw new Error(`${file} has no line that ends with ${line}`)
    const end = at + line.length + 1
    this.write(file, before.slice(0, end) + text + before.slice(end))
  }

  /** What the compiler says; empty when it has no objection. */
  typecheck(...include: ReadonlyArray<string>): string {
    const config = { extends: "./tsconfig.json", compilerOptions: { noEmit: true }, include }
    this.write("tsconfig.toy.json", JSON.stringify(config))
    return this.node(join(top, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.toy.json").stdout
  }

  /** Runs a module and reads what it prints as JSON. */
  run(script: string): unknown {
    this.write("toy.ts", script)
    const { status, stderr, stdout } = this.node("toy.ts")
    if (status !== 0) throw new Error(stderr)
    return JSON.parse(stdout)
  }

  node(...args: ReadonlyArray<string>) {
    return spawnSync(process.execPath, args, { cwd: this.path, encoding: "utf8" })
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

/** The files that the compiler complains about. */
export const complainedAbout = (output: string): ReadonlyArray<string> =>
  [...new Set(output.match(/^[^\s(]+\.ts(?=\()/gm))].sort()
