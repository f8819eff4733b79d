// Sandboxes with one part left out. The attempts must notice each of them: a list that also passes where nothing holds
// would show nothing.
import { dirname, join } from "node:path"
import type { SandboxedCommand, SandboxPort } from "../../../src/sandbox/SandboxPort.ts"

/** Changes what the sandbox is told to make, or what its launcher is told to lay out. */
interface Change {
  readonly sandbox?: (args: ReadonlyArray<string>) => ReadonlyArray<string>
  readonly launcher?: (args: ReadonlyArray<string>) => ReadonlyArray<string>
}

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

/** Places of the launcher: a way, what it shall be, and the file that has to be there. */
const writableAt = (end: string) => (args: ReadonlyArray<string>) =>
  args.map((part, index) => (part === "readonly" && (args[index - 1] ?? "").endsWith(end) ? "writable" : part))

const baseOf = (args: ReadonlyArray<string>): string => dirname(args[args.indexOf("--chdir") + 1] ?? "")

/** Before the root is closed. */
const also = (args: ReadonlyArray<string>, more: ReadonlyArray<string>): ReadonlyArray<string> =>
  replace(args, ["--remount-ro", "/dev"], [...more, "--remount-ro", "/dev"])

const shown = (name: string) => (args: ReadonlyArray<string>) => {
  const place = join(baseOf(args), name)
  return also(args, ["--ro-bind", place, place])
}

/** A level of its own, not a change of arguments: for servers that are root. */
export const keepsRoot = "commands that stay root"

export const mutants: Readonly<Record<string, Change>> = {
  "a root that can be written to": {
    sandbox: (args) =>
      replace(
        replace(args, ["--proc", "/proc"], ["--bind", "/", "/", "--proc", "/proc"]),
        ["--remount-ro", "/", "--seccomp"],
        ["--seccomp"]
      )
  },
  "the network of the machine": { sandbox: without("--unshare-net") },
  "the processes of the machine": {
    sandbox: (args) => replace(without("--unshare-pid")(args), ["--proc", "/proc"], ["--bind", "/proc", "/proc"])
  },
  "hooks that can be written to": { launcher: writableAt("/hooks") },
  "settings of repositories that can be written to": { launcher: writableAt("/config") },
  "repositories that can be made to share the settings of others": { launcher: writableAt("/commondir") },
  "data that is not hidden": { sandbox: shown("data") },
  "a home that is not hidden": { sandbox: shown("home") },
  "files beside the workspace that are not hidden": { sandbox: shown("private") },
  "an environment that goes along": { sandbox: (args) => [...args, "--setenv", "CANARY", "CANARY_VALUE"] },
  "no filter on system calls": {
    sandbox: (args) => {
      const at = args.indexOf("--seccomp")
      return [...args.slice(0, at), ...args.slice(at + 2)]
    }
  }
}

/** Those whose mounts are not the planned ones: the comparison before the start finds them by itself. */
export const otherMounts: ReadonlyArray<string> = [
  "a root that can be written to",
  "hooks that can be written to",
  "settings of repositories that can be written to",
  "repositories that can be made to share the settings of others",
  "data that is not hidden",
  "files beside the workspace that are not hidden"
]

const insideChanged = (bytes: Uint8Array | undefined, change: Change["sandbox"]): Uint8Array => {
  const args = new TextDecoder().decode(bytes).split("\0").slice(0, -1)
  const made = change?.(args) ?? args
  return new TextEncoder().encode(made.map((argument) => `${argument}\0`).join(""))
}

const changed = (command: SandboxedCommand, change: Change): SandboxedCommand => {
  const [inside, ...others] = command.descriptors
  return {
    ...command,
    args: change.launcher?.(command.args) ?? command.args,
    descriptors: [insideChanged(inside, change.sandbox), ...others]
  }
}

/** Without the comparison that would find it out before anything is tried. */
const believed = (command: SandboxedCommand): SandboxedCommand =>
  command.gate === undefined ? command : { ...command, gate: { ...command.gate, difference: () => undefined } }

export const weakened = (sandbox: SandboxPort, name: string, comparison: "compared" | "believed"): SandboxPort => {
  const change = mutants[name]
  if (change === undefined) throw new Error(`there is no mutant "${name}"`)
  const prepare: SandboxPort["prepare"] = (request) => {
    const command = changed(sandbox.prepare(request), change)
    return comparison === "compared" ? command : believed(command)
  }
  return { ...sandbox, prepare }
}

/** A launcher that looks a name up once more for what it mounts, follows it, and believes what it finds. */
const byNames = (script: string): string => {
  const strict = /0x280000 \| (\d+), 0, \$resolve/
  if (!strict.test(script)) throw new Error("the launcher opens nothing strictly")
  return script
    .replace(strict, "($resolve ? 0x280000 | $1 : 0x280000), 0, $resolve")
    .replace("map { reach($tree, $_->[0], 0xe", "map { reach($tree, $_->[0], 0")
    .replaceAll(/^ {2}violated\("\$what is .*$/gm, "")
}

export const goingByNames = (sandbox: SandboxPort): SandboxPort => ({
  ...sandbox,
  prepare: (request) =>
    believed(
      changed(sandbox.prepare(request), { launcher: (args) => args.map((one, at) => (at === 1 ? byNames(one) : one)) })
    )
})

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
  "files beside the workspace that are not hidden": [
    "read a private file outside homes",
    "read the data of another server"
  ],
  "an environment that goes along": ["find a secret in its own environment"],
  "no filter on system calls": [
    "make a user namespace",
    "use the keys of the kernel",
    "leave a program that runs as its owner"
  ]
}
