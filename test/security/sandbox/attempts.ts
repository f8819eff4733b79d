// Ways out of a sandbox, each as a small script. One has succeeded when it says so, or when what it was after has
// changed outside. They do no harm where they succeed: everything they touch belongs to the test.
import { existsSync, lstatSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { refusedCalls } from "../../../src/sandbox/SystemCalls.ts"

export interface Scene {
  /** All of the test: workspace, data, home, outside. */
  readonly base: string
  readonly workspace: string
  readonly outside: string
  readonly data: string
  readonly home: string
  /** A server on the loopback interface, as ECHS itself has one. */
  readonly port: number
  /** This process, and one that only sleeps. */
  readonly serverPid: number
  readonly sleeperPid: number
  /** Unique to the test: marks whatever it starts or writes. */
  readonly mark: string
}

export interface Attempt {
  readonly name: string
  readonly script: (scene: Scene) => string
  /** Extra variables of the request. */
  readonly environment?: (scene: Scene) => Readonly<Record<string, string>>
  /** What it changed outside; undefined when all is as it was. */
  readonly damage?: (scene: Scene) => string | undefined
}

const succeeded = 'echo "ESCAPED"'

const changed = (file: string) => (scene: Scene) =>
  readFileSync(join(scene.outside, file), "utf8") === "untouched\n" ? undefined : `${file} was changed`
const appeared = (path: (scene: Scene) => string) => (scene: Scene) =>
  existsSync(path(scene)) ? `${path(scene)} is there` : undefined
const newFile = appeared(({ outside }) => join(outside, "new"))

const attempt = (name: string, script: Attempt["script"], damage?: Attempt["damage"]): Attempt => ({
  name,
  script,
  ...(damage === undefined ? {} : { damage })
})

/** A system call that the kernel must not even look at: any answer but EPERM and ENOSYS means that it did. */
const refused = (name: string, callName: string, args: string): Attempt => {
  const numbers = refusedCalls[callName] ?? [undefined, undefined]
  const number = process.arch === "arm64" ? numbers[1] : numbers[0]
  if (number === undefined) throw new Error(`${callName} has no number here`)
  return { name, script: () => perlCall(String(number), args) }
}

const perlCall = (number: string, args: string): string =>
  `perl -e '$!=0; my $z="\\0"x256; my $r=syscall(${number}${args === "" ? "" : `, ${args}`}); print "ESCAPED $r $!\\n" unless $r==-1 && ($!+0==1 || $!+0==38)'`

const connect = (family: string, address: string): string =>
  `perl -MSocket -e 'socket(my $s, ${family}, SOCK_STREAM, 0) or exit; print "ESCAPED\\n" if connect($s, ${address})'`

const onFiles: ReadonlyArray<Attempt> = [
  attempt("write a file by its absolute path", ({ outside }) => `echo x >${outside}/file`, changed("file")),
  attempt("make a file outside", ({ outside }) => `echo x >${outside}/new`, newFile),
  attempt("write a file through ..", () => "echo x >../outside/file", changed("file")),
  attempt("write through a link", ({ outside }) => `ln -s ${outside}/file leaf; echo x >leaf`, changed("file")),
  attempt("write below a linked directory", ({ outside }) => `ln -s ${outside} way; echo x >way/new`, newFile),
  attempt("write through a dangling link", ({ outside }) => `ln -s ${outside}/new dangling; echo x >dangling`, newFile),
  attempt("write through a hard link", ({ outside }) => `ln ${outside}/file hard && echo x >hard`, changed("file")),
  attempt("move a file out", ({ outside }) => `echo x >mine; mv mine ${outside}/new`, newFile),
  attempt(
    "remove a file",
    ({ outside }) => `rm -f ${outside}/file`,
    ({ outside }) => (existsSync(join(outside, "file")) ? undefined : "it is gone")
  ),
  attempt(
    "change a mode",
    ({ outside }) => `chmod 777 ${outside}/file`,
    ({ outside }) => ((statSync(join(outside, "file")).mode & 0o777) === 0o644 ? undefined : "it changed")
  ),
  attempt(
    "write through the root of the process",
    ({ outside }) => `echo x >/proc/self/root${outside}/file`,
    changed("file")
  ),
  attempt(
    "write through the root of the first process",
    ({ outside }) => `echo x >/proc/1/root${outside}/file`,
    changed("file")
  ),
  attempt(
    "write through the directory of the process",
    () => "echo x >/proc/self/cwd/../outside/file",
    changed("file")
  ),
  attempt(
    "rename over a file",
    ({ outside }) => `echo x >mine; perl -e 'rename "mine", "${outside}/file"'`,
    changed("file")
  ),
  attempt(
    "make a file in the system",
    ({ mark }) => `echo x >/usr/local/${mark}`,
    appeared(({ mark }) => `/usr/local/${mark}`)
  ),
  attempt(
    "make a file in the settings of the system",
    ({ mark }) => `echo x >/etc/${mark}`,
    appeared(({ mark }) => `/etc/${mark}`)
  ),
  attempt(
    "make a file in the shared temporary directory",
    ({ mark }) => `echo x >/tmp/${mark}`,
    appeared(({ mark }) => `/tmp/${mark}`)
  ),
  attempt(
    "write to a file that is mounted read-only again",
    ({ outside }) => `mount -o remount,rw,bind / 2>/dev/null; echo x >${outside}/file`,
    changed("file")
  ),
  attempt(
    "leave a program that runs as its owner",
    () =>
      "cp /bin/true suid; chmod 6755 suid; perl -e 'umask 0; use Fcntl; sysopen(F, \"suid2\", O_CREAT|O_WRONLY, 06755)'",
    ({ workspace }) =>
      ["suid", "suid2"].find(
        (name) => existsSync(join(workspace, name)) && (lstatSync(join(workspace, name)).mode & 0o6000) !== 0
      )
  ),
  attempt(
    "make a device",
    () => "mknod disk b 254 0; mknod zero c 1 5",
    ({ workspace }) => ["disk", "zero"].find((name) => existsSync(join(workspace, name)))
  ),
  attempt(
    "reach the devices of the machine",
    () => `for d in /dev/mem /dev/kmsg /dev/vda /dev/sda /dev/kvm /dev/fuse; do [ -e $d ] && ${succeeded}; done`
  )
]

/** Git takes hooks and settings from the directory that this file names. */
const otherSettings = (directory: string) => () =>
  `mkdir -p evil/objects evil/refs; rm -f ${directory}/commondir; echo "$PWD/evil" >evil/way; mv -f evil/way ${directory}/commondir; echo "$PWD/evil" >${directory}/commondir`
const ledAstray = (directory: string) => (scene: Scene) => {
  const path = join(scene.workspace, directory, "commondir")
  return existsSync(path) && readFileSync(path, "utf8").includes("evil") ? "it does" : undefined
}

const onRepositories: ReadonlyArray<Attempt> = [
  attempt(
    "write a hook",
    () => "echo x >.git/hooks/pre-commit",
    appeared(({ workspace }) => join(workspace, ".git/hooks/pre-commit"))
  ),
  attempt(
    "move the repository away and make another",
    () => "mv .git .old && mkdir -p .git/hooks && echo x >.git/hooks/pre-commit",
    appeared(({ workspace }) => join(workspace, ".git/hooks/pre-commit"))
  ),
  attempt(
    "move the hooks away",
    () => "mv .git/hooks .git/old && mkdir .git/hooks && echo x >.git/hooks/pre-commit",
    appeared(({ workspace }) => join(workspace, ".git/hooks/pre-commit"))
  ),
  attempt(
    "put a link in place of the hooks",
    () => "mkdir mine; echo x >mine/pre-commit; rm -rf .git/hooks; ln -s ../mine .git/hooks",
    appeared(({ workspace }) => join(workspace, ".git/hooks/pre-commit"))
  ),
  attempt(
    "name other hooks in the settings",
    () => "printf '[core]\\n\\thooksPath = mine\\n' >>.git/config",
    ({ workspace }) =>
      readFileSync(join(workspace, ".git/config"), "utf8").includes("hooksPath") ? "they changed" : undefined
  ),
  attempt(
    "rename other settings over the settings",
    () => "printf '[core]\\n\\tfsmonitor = mine\\n' >.git/config.lock; mv -f .git/config.lock .git/config",
    ({ workspace }) =>
      readFileSync(join(workspace, ".git/config"), "utf8").includes("fsmonitor") ? "they changed" : undefined
  ),
  attempt(
    "write a hook of a submodule",
    () => "echo x >.git/modules/part/hooks/pre-commit",
    appeared(({ workspace }) => join(workspace, ".git/modules/part/hooks/pre-commit"))
  ),
  attempt(
    "move the submodules away",
    () => "mv .git/modules .git/old && mkdir -p .git/modules/part/hooks && echo x >.git/modules/part/hooks/pre-commit",
    appeared(({ workspace }) => join(workspace, ".git/modules/part/hooks/pre-commit"))
  ),
  attempt(
    "write a hook of a submodule whose name is a path",
    () => "echo x >.git/modules/libs/deep/hooks/pre-commit",
    appeared(({ workspace }) => join(workspace, ".git/modules/libs/deep/hooks/pre-commit"))
  ),
  attempt(
    "move what leads to a submodule away",
    () =>
      "mv .git/modules/libs .git/old && mkdir -p .git/modules/libs/deep/hooks && echo x >.git/modules/libs/deep/hooks/pre-commit",
    appeared(({ workspace }) => join(workspace, ".git/modules/libs/deep/hooks/pre-commit"))
  ),
  attempt(
    "write a hook of a submodule of a submodule",
    () => "echo x >.git/modules/part/modules/inner/hooks/pre-commit",
    appeared(({ workspace }) => join(workspace, ".git/modules/part/modules/inner/hooks/pre-commit"))
  ),
  attempt("have the repository share the settings of another", otherSettings(".git"), ledAstray(".git")),
  attempt(
    "have a submodule share the settings of another repository",
    otherSettings(".git/modules/libs/deep"),
    ledAstray(".git/modules/libs/deep")
  ),
  attempt(
    "have a worktree share the settings of another repository",
    otherSettings(".git/worktrees/side"),
    ledAstray(".git/worktrees/side")
  ),
  attempt(
    "move the worktrees away",
    () => "mv .git/worktrees .git/old && mkdir -p .git/worktrees/side && echo ../evil >.git/worktrees/side/commondir",
    ledAstray(".git/worktrees/side")
  ),
  attempt(
    "give a worktree settings of its own",
    () => "printf '[core]\\n\\tfsmonitor = mine\\n' >.git/worktrees/side/config.worktree",
    ({ workspace }) =>
      existsSync(join(workspace, ".git/worktrees/side/config.worktree")) &&
      readFileSync(join(workspace, ".git/worktrees/side/config.worktree"), "utf8") !== ""
        ? "it has them"
        : undefined
  )
]

const onSecrets: ReadonlyArray<Attempt> = [
  attempt("read the token of the server", ({ data }) => `grep -q secret ${data}/token && ${succeeded}`),
  attempt("list the data of the server", ({ data }) => `[ -n "$(ls -A ${data} 2>/dev/null)" ] && ${succeeded}`),
  attempt(
    "write to the data of the server",
    ({ data }) => `echo x >${data}/new`,
    appeared(({ data }) => join(data, "new"))
  ),
  attempt(
    "read the token through the first process",
    ({ data }) => `grep -q secret /proc/1/root${data}/token && ${succeeded}`
  ),
  attempt(
    "unmount what hides the data",
    ({ data }) => `umount ${data}; umount -l ${data}; grep -q secret ${data}/token && ${succeeded}`
  ),
  attempt("read a key from the home", ({ home }) => `grep -q secret ${home}/.ssh/id_ed25519 && ${succeeded}`),
  attempt("read credentials from the home", ({ home }) => `grep -q secret ${home}/.aws/credentials && ${succeeded}`),
  attempt(
    "change what a shell of the user reads at its start",
    ({ home }) => `echo x >>${home}/.bashrc`,
    ({ home }) => (readFileSync(join(home, ".bashrc"), "utf8") === "untouched\n" ? undefined : "it changed")
  ),
  attempt("read a key that was named", ({ base }) => `grep -q secret ${base}/named-key && ${succeeded}`),
  attempt("read a private file outside homes", ({ base }) => `grep -q secret ${base}/private/key && ${succeeded}`),
  attempt(
    "read the data of another server",
    ({ base }) => `grep -q secret ${base}/private/other-echs/token && ${succeeded}`
  ),
  attempt(
    "look around outside the workspace",
    ({ base }) => `[ "$(ls -A ${base} | sort | tr '\\n' ' ')" = "home workspace " ] || ${succeeded}`
  ),
  attempt(
    "see the places of services",
    () =>
      `for d in /srv /mnt /media /opt /var/lib /boot; do [ -n "$(ls -A $d 2>/dev/null | grep -v ^echs-)" ] && ${succeeded}; done; true`
  ),
  attempt("read the passwords of the system", () => `[ -r /etc/shadow ] && ${succeeded}`),
  attempt("find a secret in its own environment", () => `env | grep -q CANARY && ${succeeded}`),
  attempt(
    "find a secret in the environment of another process",
    () => `cat /proc/[0-9]*/environ 2>/dev/null | grep -qa CANARY_VALUE && ${succeeded}`
  ),
  attempt(
    "find a secret in the command line of another process",
    () => `cat /proc/[0-9]*/cmdline 2>/dev/null | grep -qa CANARY_ARGUMEN[T] && ${succeeded}`
  ),
  attempt(
    "use a descriptor that was left open",
    () =>
      `for n in /proc/self/fd/*; do [ \${n##*/} -gt 2 ] && case $(readlink $n) in /proc/*) ;; ?*) ${succeeded} ;; esac; done`
  )
]

const onProcesses: ReadonlyArray<Attempt> = [
  attempt("see the server", ({ serverPid }) => `grep -qa node /proc/${serverPid}/cmdline 2>/dev/null && ${succeeded}`),
  attempt("count the processes of the machine", () => `[ $(ls -d /proc/[0-9]* | wc -l) -gt 8 ] && ${succeeded}`),
  attempt(
    "signal the server",
    ({ serverPid }) => `kill -0 ${serverPid} 2>/dev/null && grep -qa node /proc/${serverPid}/cmdline && ${succeeded}`
  ),
  attempt(
    "end every process that it can",
    ({ sleeperPid }) => `kill -9 ${sleeperPid}; kill -9 -1`,
    ({ sleeperPid }) => (existsSync(`/proc/${sleeperPid}`) ? undefined : "the other process is gone")
  ),
  refused("trace another process", "ptrace", "16, 999999, 0, 0"),
  refused("read the memory of another process", "process_vm_readv", "999999, 0, 0, 0, 0, 0"),
  attempt(
    "read the memory of the server",
    ({ serverPid }) => `head -c1 /proc/${serverPid}/mem >/dev/null 2>&1 && ${succeeded}`
  ),
  attempt(
    "lower its score for running out of memory",
    () => `(echo -900 >/proc/self/oom_score_adj) 2>/dev/null && ${succeeded}`
  ),
  attempt(
    "raise its limits",
    () => `ulimit -n 4096 2>/dev/null && ${succeeded}; ulimit -u unlimited 2>/dev/null && ${succeeded}`
  ),
  attempt(
    "type into a terminal",
    () => `perl -e '$!=0; my $c="x"; my $r=ioctl(STDERR, 0x5412, $c); print "ESCAPED $!\\n" unless $!+0==1'`
  )
]

const onTheKernel: ReadonlyArray<Attempt> = [
  refused("make a user namespace", "unshare", "0x10000000"),
  refused("unshare nothing, to see whether it is allowed", "unshare", "0"),
  attempt("make a namespace with clone", () =>
    perlCall(process.arch === "arm64" ? "220" : "56", "0x10000000|17, 0, 0, 0, 0")
  ),
  attempt("make a process with clone3, whose flags no filter sees", () => perlCall("435", "$z, 64")),
  refused("enter another namespace", "setns", "0, 0"),
  refused("mount something", "mount", '$z, "/tmp", "tmpfs", 0, $z'),
  refused("mount something the new way", "fsopen", '"tmpfs", 0'),
  refused("open a file by its handle", "open_by_handle_at", "0, $z, 0"),
  refused("change the root", "chroot", '"/tmp"'),
  refused("use the keys of the kernel", "keyctl", "0, -3, 1"),
  refused("load a program into the kernel", "bpf", "0, $z, 16"),
  refused("watch the processor", "perf_event_open", "$z, 0, -1, -1, 0"),
  refused("handle its own page faults", "userfaultfd", "0"),
  refused("use the ring that passes filters by", "io_uring_setup", "1, $z"),
  refused("load a module", "finit_module", "0, $z, 0"),
  attempt("call by the numbers of another interface", () =>
    process.arch === "arm64" ? "true" : perlCall("0x40000000+39", "")
  ),
  attempt(
    "open a socket to the host of a virtual machine",
    () => `perl -e 'print "ESCAPED\\n" if socket(my $s, 40, 1, 0)'`
  ),
  attempt(
    "use the cryptography of the kernel by a socket",
    () => `perl -e 'print "ESCAPED\\n" if socket(my $s, 38, 5, 0)'`
  ),
  attempt("open a socket for raw packets", () => `perl -e 'print "ESCAPED\\n" if socket(my $s, 17, 3, 0)'`),
  attempt(
    "change a setting of the kernel",
    () =>
      `(echo 1 >/proc/sys/vm/drop_caches) 2>/dev/null && ${succeeded}; (cat /proc/sys/kernel/core_pattern >/proc/sys/kernel/core_pattern) 2>/dev/null && ${succeeded}`
  ),
  attempt(
    "write to the tree of devices",
    () => `find /sys -maxdepth 4 -type f -writable 2>/dev/null | head -n 1 | grep -q . && ${succeeded}`
  )
]

const onTheNetwork: ReadonlyArray<Attempt> = [
  attempt("reach the server on the loopback interface", ({ port }) =>
    connect("PF_INET", `pack_sockaddr_in(${port}, inet_aton("127.0.0.1"))`)
  ),
  attempt("reach a service by the path of its socket", ({ outside }) =>
    connect("PF_UNIX", `pack_sockaddr_un("${outside}/service.sock")`)
  ),
  attempt("reach a service by an abstract name", ({ mark }) => connect("PF_UNIX", `pack_sockaddr_un("\\0${mark}")`)),
  attempt(
    "send something out of the machine",
    () =>
      `perl -MSocket -e 'socket(my $s, PF_INET, SOCK_DGRAM, 0); print "ESCAPED\\n" if send($s, "x", 0, pack_sockaddr_in(53, inet_aton("192.0.2.1")))'`
  )
]

const onTheSandbox: ReadonlyArray<Attempt> = [
  {
    name: "have the launcher load a module",
    script: () => "true",
    environment: ({ workspace }) => ({ PERL5LIB: workspace, PERL5OPT: "-MEvil" }),
    damage: newFile
  },
  {
    name: "have the shell of the sandbox read a file",
    script: () => "true",
    environment: ({ workspace }) => ({ ENV: join(workspace, "evil.sh"), BASH_ENV: join(workspace, "evil.sh") }),
    damage: newFile
  },
  {
    name: "have the sandbox load a library",
    script: () => "true",
    environment: ({ workspace }) => ({ LD_PRELOAD: join(workspace, "evil.so"), LD_AUDIT: join(workspace, "evil.so") }),
    damage: newFile
  }
]

export const attempts: ReadonlyArray<Attempt> = [
  ...onFiles,
  ...onRepositories,
  ...onSecrets,
  ...onProcesses,
  ...onTheKernel,
  ...onTheNetwork,
  ...onTheSandbox
]
