// Who runs the server in a test: root, or an ordinary user, who has to reach the tree of the project and its Node.
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import type { Part } from "../../support/require.ts"

export const isRoot = process.getuid?.() === 0
export const ordinary = 64_321

const setpriv = ["setpriv", "--reuid", String(ordinary), "--regid", String(ordinary), "--clear-groups"] as const

/** The command line that begins as an ordinary user. */
export const asOrdinary = (): ReadonlyArray<string> => (isRoot ? [...setpriv, process.execPath] : [process.execPath])

const directory = fileURLToPath(new URL(".", import.meta.url))

export const reachable: Part = {
  name: "a project that ordinary users can read",
  isThere: () => {
    const [file, ...args] = setpriv
    return !isRoot || spawnSync(file, [...args, "test", "-r", directory]).status === 0
  },
  remedy: `chmod o+rx the directories above ${directory}`
}
