// What the attempts are made against: a workspace with a repository, data and keys that are not for commands, services
// that listen, and another process. It is made anew for each attempt, so that none profits from one before.
import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:net"
import { join } from "node:path"
import type { Scene } from "./attempts.ts"

const write = (path: string, text: string, mode = 0o644): void => writeFileSync(path, text, { mode })

/** One by its name, one whose name is a path, one of another. */
const submodules: ReadonlyArray<string> = ["part", "libs/deep", "part/modules/inner"]

const repository = (workspace: string): void => {
  for (const git of [".git", ...submodules.map((name) => `.git/modules/${name}`)]) {
    mkdirSync(join(workspace, git, "hooks"), { recursive: true })
    write(join(workspace, git, "config"), "[core]\n\tbare = false\n")
    write(join(workspace, git, "HEAD"), "ref: refs/heads/main\n")
  }
  mkdirSync(join(workspace, ".git/worktrees/side"), { recursive: true })
  write(join(workspace, ".git/worktrees/side/commondir"), "../..\n")
}

/** Loaded by whoever can be made to: it writes where only somebody outside the sandbox can. */
const traps = (workspace: string, outside: string): void => {
  write(join(workspace, "Evil.pm"), `open(F, ">", "${outside}/new"); print F "x"; 1;\n`)
  write(join(workspace, "evil.sh"), `echo x >${outside}/new\n`)
}

const files = (base: string): Pick<Scene, "workspace" | "outside" | "data" | "home"> => {
  const [workspace, outside] = [join(base, "workspace"), join(base, "outside")]
  const [data, home] = [join(base, "data"), join(base, "home")]
  for (const directory of [workspace, outside, data, join(home, ".ssh"), join(home, ".aws")])
    mkdirSync(directory, { recursive: true })
  write(join(outside, "file"), "untouched\n")
  write(join(data, "token"), "secret\n", 0o600)
  write(join(home, ".ssh", "id_ed25519"), "secret\n")
  write(join(home, ".aws", "credentials"), "secret\n")
  write(join(home, ".bashrc"), "untouched\n")
  write(join(base, "named-key"), "secret\n")
  mkdirSync(join(base, "private", "other-echs"), { recursive: true })
  write(join(base, "private", "key"), "secret\n", 0o600)
  write(join(base, "private", "other-echs", "token"), "secret\n", 0o600)
  repository(workspace)
  traps(workspace, outside)
  return { workspace, outside, data, home }
}

const listen = (where: string | number): Promise<Server> =>
  new Promise((resolve, reject) => {
    const server = createServer((socket) => void socket.end())
    server.on("error", reject)
    const onListening = (): void => resolve(server)
    if (typeof where === "number") server.listen(where, "127.0.0.1", onListening)
    else server.listen(where, onListening)
  })

export const makeScene = async (base: string): Promise<{ readonly scene: Scene; readonly clear: () => void }> => {
  const mark = `echs-escape-${randomBytes(6).toString("hex")}`
  const places = files(base)
  const servers = [await listen(0), await listen(join(places.outside, "service.sock")), await listen(`\0${mark}`)]
  const address = servers[0]?.address()
  const sleeper: ChildProcess = spawn("sleep", ["600"], {
    stdio: "ignore",
    env: { CANARY: "CANARY_VALUE" },
    argv0: "CANARY_ARGUMENT"
  })
  const port = typeof address === "object" && address !== null ? address.port : 0
  const scene: Scene = { base, ...places, port, serverPid: process.pid, sleeperPid: sleeper.pid ?? 0, mark }
  const clear = (): void => {
    sleeper.kill("SIGKILL")
    for (const server of servers) server.close()
    for (const path of [`/usr/local/${mark}`, `/etc/${mark}`, `/tmp/${mark}`]) rmSync(path, { force: true })
    for (const name of ["workspace", "outside", "data", "home", "named-key", "private"])
      rmSync(join(base, name), { recursive: true, force: true })
  }
  return { scene, clear }
}
