// Commands where nothing holds them: with limits of resources where there is a shell to set them, and without. What a
// request asks to be kept from is not kept from it, and the level says so.
import { realpathSync, statSync } from "node:fs"
import { limitScript } from "./Bubblewrap.ts"
import { SandboxRefused } from "./SandboxErrors.ts"
import { sandboxLimits } from "./SandboxLimits.ts"
import type { LimitInForce, SandboxedCommand, SandboxRequest } from "./SandboxPort.ts"

/** The number of processes is not among them: outside a namespace it would count all of the user's. */
export const limitsWithoutNamespaces: ReadonlyArray<LimitInForce> = [
  { name: "memory bytes", value: sandboxLimits.memoryBytesMax, per: "process" },
  { name: "processor seconds", value: sandboxLimits.processorSecondsMax, per: "process" },
  { name: "open files", value: sandboxLimits.openFilesMax, per: "process" },
  { name: "file bytes", value: sandboxLimits.fileBytesMax, per: "file" }
]

const checked = (request: SandboxRequest): readonly [file: string, ...args: ReadonlyArray<string>] => {
  const [file, ...args] = request.argv
  if (file === undefined || request.argv.some((text) => text.includes("\0")))
    throw new SandboxRefused("bad_text", file ?? "", "is no command: it is empty or holds a NUL character")
  return [file, ...args]
}

const outside = (request: SandboxRequest, argv: readonly [string, ...ReadonlyArray<string>]): SandboxedCommand => {
  const [file, ...args] = argv
  if (statSync(request.directory, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new SandboxRefused("not_there", request.directory, "is no directory")
  const directory = realpathSync(request.directory)
  return { file, args, directory, environment: request.environment, descriptors: [], files: "", isNamespace: false }
}

export const unlimitedCommand = (request: SandboxRequest): SandboxedCommand => outside(request, checked(request))

export const limitedCommand =
  (shell: string) =>
  (request: SandboxRequest): SandboxedCommand =>
    outside(request, [shell, "-c", `${limitScript}; exec "$@"`, "sh", ...checked(request)])
