// Sandboxes with one part left out. The attempts must notice each of them: a list that also passes where nothing holds
// would show nothing.
import type { SandboxedCommand, SandboxPort } from "../../../src/tool/sandbox/Port.ts"

type Change = (args: ReadonlyArray<string>) => ReadonlyArray<string>

/** Replaces the arguments from the first match on. */
const replace = (args: ReadonlyArray<string>, find: ReadonlyArray<string>, by: ReadonlyArray<string>) => {
  const at = args.findIndex((_, index) => find.every((part, offset) => args[index + offset] === part))
  if (at === -1) throw new Error(`the sandbox has no ${find.join(" ")}`)
  return [...args.slice(0, at), ...by, ...args.slice(at + find.length)]
}

const namespaces = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
const without = (one: string) => (args: ReadonlyArray<string>) =>
  replace(
    args,
    ["--unshare-all"],
    namespaces.filter((name) => name !== one)
  )

const everywhere = (args: ReadonlyArray<string>, matches: (at: string) => boolean, kind: string, by: string) =>
  args.map((part, index) => (part === kind && matches(args[index + 2] ?? "") ? by : part))

/** Leaves out an empty file system, its size and what makes it read-only. */
const unhide = (args: ReadonlyArray<string>, matches: (at: string) => boolean): ReadonlyArray<string> => {
  const kept: Array<string> = []
  for (let index = 0; index < args.length; index++) {
    const isHidden = args[index] === "--size" && args[index + 2] === "--tmpfs" && matches(args[index + 3] ?? "")
    const isSealed = args[index] === "--remount-ro" && matches(args[index + 1] ?? "")
    if (isHidden) index += 3
    else if (isSealed) index += 1
    else kept.push(args[index] ?? "")
  }
  return kept
}

/** A level of its own, not a change of arguments: for servers that are root. */
export const keepsRoot = "commands that stay root"

export const mutants: Readonly<Record<string, Change>> = {
  "a root that can be written to": (args) => replace(args, ["--ro-bind", "/", "/"], ["--bind", "/", "/"]),
  "the network of the machine": without("--unshare-net"),
  "the processes of the machine": (args) =>
    replace(without("--unshare-pid")(args), ["--proc", "/proc"], ["--bind", "/proc", "/proc"]),
  "hooks that can be written to": (args) => everywhere(args, (at) => at.endsWith("/hooks"), "--ro-bind", "--bind"),
  "settings of repositories that can be written to": (args) =>
    everywhere(args, (at) => at.endsWith("/config"), "--ro-bind", "--bind"),
  "repositories that can be made to share the settings of others": (args) =>
    everywhere(args, (at) => at.endsWith("/commondir"), "--ro-bind", "--bind"),
  "data that is not hidden": (args) => unhide(args, (at) => at.endsWith("/data")),
  "a home that is not hidden": (args) => unhide(args, (at) => at.endsWith("/home") && at !== "/home"),
  "an environment that goes along": (args) => [...args, "--setenv", "CANARY", "CANARY_VALUE"],
  "no filter on system calls": (args) => {
    const at = args.indexOf("--seccomp")
    return [...args.slice(0, at), ...args.slice(at + 2)]
  }
}

const changed = (command: SandboxedCommand, change: Change): SandboxedCommand => {
  const [inside, ...others] = command.descriptors
  const args = new TextDecoder().decode(inside).split("\0").slice(0, -1)
  const bytes = new TextEncoder().encode(
    change(args)
      .map((argument) => `${argument}\0`)
      .join("")
  )
  return { ...command, descriptors: [bytes, ...others] }
}

export const weakened = (sandbox: SandboxPort, name: string): SandboxPort => {
  const change = mutants[name]
  if (change === undefined) throw new Error(`there is no mutant "${name}"`)
  return { ...sandbox, prepare: (request) => changed(sandbox.prepare(request), change) }
}

/** The attempts that must notice each of them. */
export const noticedBy: Readonly<Record<string, ReadonlyArray<string>>> = {
  "a root that can be written to": ["write a file by its absolute path", "write through a link", "remove a file"],
  "the network of the machine": ["reach the server on the loopback interface", "reach a service by an abstract name"],
  "the processes of the machine": ["see the server", "count the processes of the machine"],
  "hooks that can be written to": ["write a hook", "write a hook of a submodule"],
  "settings of repositories that can be written to": ["name other hooks in the settings"],
  "repositories that can be made to share the settings of others": [
    "have the repository share the settings of another",
    "have a submodule share the settings of another repository",
    "have a worktree share the settings of another repository"
  ],
  "data that is not hidden": ["read the token of the server", "list the data of the server"],
  "a home that is not hidden": ["read a key from the home", "read credentials from the home"],
  "an environment that goes along": ["find a secret in its own environment"],
  "no filter on system calls": [
    "make a user namespace",
    "use the keys of the kernel",
    "leave a program that runs as its owner"
  ]
}
