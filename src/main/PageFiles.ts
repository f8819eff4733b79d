// Where the files of the page come from. The package has them built; a checkout bundles them on the first request, in a
// process of its own, and keeps them in memory for as long as the server runs.
import { execFile } from "node:child_process"
import { readdir, readFile } from "node:fs/promises"
import { extname, join } from "node:path"
import { promisify } from "node:util"
import { brotliCompress, constants, gzip } from "node:zlib"
import type { PageFile, PageFiles } from "../server/http/Page.ts"

const run = promisify(execFile)
const brotli = promisify(brotliCompress)
const zip = promisify(gzip)

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml"
}

const indexName = "index.html"
const bundleWithinMs = 60_000
const bundleBytesMax = 16 * 1_048_576

interface NamedBytes {
  readonly path: string
  readonly bytes: Buffer
}

const isCheckout = import.meta.filename.endsWith(".ts")
const top = join(import.meta.dirname, "..", "..")

const bundled = async (): Promise<ReadonlyArray<NamedBytes>> => {
  const { stdout } = await run(process.execPath, [join(top, ".ci", "page.ts")], {
    timeout: bundleWithinMs,
    maxBuffer: bundleBytesMax
  })
  const files = JSON.parse(stdout) as ReadonlyArray<{ readonly path: string; readonly base64: string }>
  return files.map(({ base64, path }) => ({ path, bytes: Buffer.from(base64, "base64") }))
}

const packaged = async (): Promise<ReadonlyArray<NamedBytes>> => {
  const directory = join(top, "page")
  const names = await readdir(directory)
  return Promise.all(names.map(async (path) => ({ path, bytes: await readFile(join(directory, path)) })))
}

const pageFile = async ({ bytes, path }: NamedBytes): Promise<PageFile> => ({
  type: types[extname(path)] ?? "application/octet-stream",
  isImmutable: path !== indexName,
  bytes,
  compressed: {
    br: await brotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
    gzip: await zip(bytes, { level: 9 })
  }
})

const load = async (): Promise<ReadonlyMap<string, PageFile>> => {
  const files = await (isCheckout ? bundled() : packaged())
  return new Map(await Promise.all(files.map(async (file) => [file.path, await pageFile(file)] as const)))
}

export const pageFiles = (): PageFiles => {
  let loading: Promise<ReadonlyMap<string, PageFile>> | undefined
  return {
    file: async (path) => {
      loading ??= load()
      // What failed once, as for want of memory, is tried again by the next visit.
      loading.catch(() => {
        loading = undefined
      })
      return (await loading).get(path === "/" ? indexName : path.slice("/page/".length))
    }
  }
}
