// Goal: a command finds the system, the runtimes, its workspace and what was named, and nothing else of the machine.
// Method: real files of the user that commands run as, laid where people keep them, looked for from inside.
// Verifies: INV-TOOL-SANDBOX
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { detectSandbox, type SandboxOptions } from "#src/sandbox/Detect.ts"
import { allowedEnvironment } from "#src/sandbox/Environment.ts"
import { realPathOf } from "#src/sandbox/Mounts.ts"
import { makeProcesses } from "#src/sandbox/process/Processes.ts"
import { type Part, requirePart } from "../support/require.ts"
import { bubblewrap, usualPath } from "../support/sandbox.ts"

const user = 4_321
const secret = "TOP-SECRET"
let base = ""

const rootWithPlaces: Part = {
  name: "root",
  isThere: () => process.getuid?.() === 0 && ["/srv", "/opt", "/var/lib", "/etc"].every((place) => existsSync(place)),
  remedy: "run the tests as root"
}

beforeEach((context) => {
  requirePart(context, bubblewrap)
  requirePart(context, rootWithPlaces)
  base = realpathSync(mkdtempSync("/srv/echs-visible-"))
  chmodSync(base, 0o755)
  for (const name of ["workspace", "data", "home"]) mkdirSync(join(base, name))
  chownSync(join(base, "workspace"), user, user)
})
afterEach(() => {
  if (base !== "") rmSync(base, { recursive: true, force: true })
  for (const place of laid.splice(0)) rmSync(place, { recursive: true, force: true })
})

const laid: Array<string> = []

/** A file that only the user may read, in a directory that everybody may enter. */
const lay = (place: string, name = "key"): string => {
  const directory = mkdtempSync(join(place, "echs-visible-"))
  chmodSync(directory, 0o755)
  laid.push(directory)
  const file = join(directory, name)
  writeFileSync(file, `${secret}\n`, { mode: 0o600 })
  chownSync(file, user, user)
  return file
}

const run = async (script: string, more: Partial<SandboxOptions> = {}) => {
  const options = { dataDirectory: join(base, "data"), home: join(base, "home"), path: usualPath, ...more }
  const processes = makeProcesses({
    sandbox: await detectSandbox(options),
    environment: allowedEnvironment({ PATH: options.path }),
    overflowDirectory: join(base, "overflow")
  })
  try {
    return await processes.run({
      argv: ["sh", "-c", script],
      directory: join(base, "workspace"),
      writable: [join(base, "workspace")],
      network: false,
      outputCharsMax: 4_096,
      signal: new AbortController().signal
    })
  } finally {
    await processes.close()
  }
}

describe("a command", () => {
  it.for(["/srv", "/opt", "/var/lib", "/etc", "/usr/local", "/mnt"])(
    "does not read a private file of its user in %s",
    async (place) => {
      const file = lay(place)
      const { output, stdout } = await run(`id -u >/dev/null; cat ${file}; true`)
      expect(output).not.toContain(secret)
      expect(stdout).toBe("")
    }
  )

  it("does not see the data of another server", async () => {
    const token = lay("/var/lib", "token")
    expect(await run(`ls ${token}; ls /var/lib`)).toMatchObject({ stdout: "" })
  })

  it("reads what the settings name, and not what they hide in it", async () => {
    const shown = lay("/opt")
    const hidden = lay("/usr/local", "licence")
    chmodSync(hidden, 0o644)
    const { stdout } = await run(`cat ${shown} ${hidden}; echo x >${shown}; true`, {
      readable: [join(shown, "..")],
      hidden: [hidden]
    })
    expect(stdout).toBe(`${secret}\n`)
  })

  it("finds the runtime that its PATH leads to, whole", async () => {
    const prefix = mkdtempSync("/opt/echs-visible-")
    laid.push(prefix)
    chmodSync(prefix, 0o755)
    mkdirSync(join(prefix, "bin"))
    mkdirSync(join(prefix, "lib"))
    writeFileSync(join(prefix, "lib", "part"), "echo runs\n")
    writeFileSync(join(prefix, "bin", "tool"), `#!/bin/sh\n. ${prefix}/lib/part\n`, { mode: 0o755 })
    expect(await run("tool", { path: `${join(prefix, "bin")}:${usualPath}` })).toMatchObject({ stdout: "runs\n" })
  })

  it("has programs, libraries and settings of the system", async () => {
    const script = "git --version && perl -e 'print 1' && grep -q root /etc/passwd && [ -r /etc/ssl/certs ] && nproc"
    expect((await run(script)).exit_code).toBe(0)
  })
})

describe("a link on the way to a workspace", () => {
  it("is followed where only people can lay one, and nowhere else", () => {
    const workspace = join(base, "workspace")
    symlinkSync(workspace, join(base, "laid"))
    expect(() => realPathOf(join(base, "laid"), undefined)).toThrow(
      /leads through the link .*name the directory itself/
    )
    const place = `${base}-link`
    symlinkSync(workspace, place)
    laid.push(place)
    expect(realPathOf(place, undefined)).toBe(workspace)
    symlinkSync(workspace, join(base, "home", "project"))
    expect(realPathOf(join(base, "home", "project"), join(base, "home"))).toBe(workspace)
    expect(() => realPathOf(join(base, "nothing"), undefined)).toThrow(/is not there/)
  })

  it("that never ends is refused", () => {
    const place = `${base}-loop`
    symlinkSync(place, place)
    laid.push(place)
    expect(() => realPathOf(place, undefined)).toThrow(/too many links/)
  })
})
