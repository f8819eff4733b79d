// Builds the package that `npm pack` wraps: `dist/` holds plain JavaScript and type declarations, because Node does
// not strip types from files under node_modules. The manifest inside `dist/` maps the `#…` imports to what was
// emitted, so the same import lines work in the source tree and in the package.
import { spawnSync } from "node:child_process"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { bundlePage } from "./page.ts"

interface Manifest {
  readonly name: string
  readonly version: string
  readonly imports: Readonly<Record<string, string>>
}

const top = join(dirname(fileURLToPath(import.meta.url)), "..")
const outDirectory = join(top, "dist")

const readManifest = (): Manifest => JSON.parse(readFileSync(join(top, "package.json"), "utf8"))

const compile = (): void => {
  const typescript = createRequire(import.meta.url).resolve("typescript/package.json")
  const compiler = join(dirname(typescript), JSON.parse(readFileSync(typescript, "utf8")).bin.tsc)
  const { status } = spawnSync(process.execPath, [compiler, "-p", join(top, "tsconfig.build.json")], {
    stdio: "inherit"
  })
  if (status !== 0) process.exit(1)
}

const writeManifest = (): void => {
  const { name, version, imports } = readManifest()
  const emitted = Object.entries(imports).map(([from, to]) => [from, to.replace(/\.ts$/, ".js")])
  const manifest = { name, version, private: true, type: "module", imports: Object.fromEntries(emitted) }
  writeFileSync(join(outDirectory, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`)
}

/** The page, as `src/main/PageFiles.ts` looks for it. */
const writePage = async (): Promise<void> => {
  mkdirSync(join(outDirectory, "page"))
  for (const { base64, path } of await bundlePage())
    writeFileSync(join(outDirectory, "page", path), Buffer.from(base64, "base64"))
}

rmSync(outDirectory, { recursive: true, force: true })
mkdirSync(outDirectory)
compile()
writeManifest()
await writePage()
