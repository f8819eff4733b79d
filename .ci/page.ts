// Bundles the page in src/dashboard. `.ci/build.ts` writes the result into the package; a server that runs from a checkout
// starts this file as a process of its own, which prints the files as JSON, so that the server loads no bundler.
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "vite"

export interface BundledFile {
  /** `index.html`, or the name of a file under `/page/`. */
  readonly path: string
  readonly base64: string
}

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "src", "dashboard")

export const bundlePage = async (): Promise<ReadonlyArray<BundledFile>> => {
  const built = await build({
    configFile: false,
    root,
    base: "/page/",
    logLevel: "error",
    publicDir: false,
    build: {
      write: false,
      // No font or picture becomes a data: address, which the page would refuse to load.
      assetsInlineLimit: 0,
      assetsDir: "",
      modulePreload: { polyfill: false },
      target: "es2023"
    }
  })
  const [bundle] = Array.isArray(built) ? built : [built]
  if (bundle === undefined || !("output" in bundle)) throw new Error("nothing was bundled")
  return bundle.output.map((file) => ({
    path: file.fileName,
    base64: Buffer.from(file.type === "chunk" ? file.code : file.source).toString("base64")
  }))
}

if (import.meta.main) process.stdout.write(JSON.stringify(await bundlePage()))
