// Which system calls a command is refused, and their numbers on the machines we know. A command that builds, tests or
// serves something needs none of them; most ways out of a namespace begin with one.

export type Machine = "x64" | "arm64"

/** Name → number on x64, number on arm64; undefined where the machine has no such call. */
type Numbers = readonly [x64: number, arm64: number | undefined]

/** Refused whatever their arguments. */
export const refusedCalls: Readonly<Record<string, Numbers>> = {
  // Into other processes.
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  kcmp: [312, 272],
  pidfd_getfd: [438, 438],
  // Mounts and namespaces.
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  unshare: [272, 97],
  setns: [308, 268],
  open_by_handle_at: [304, 265],
  name_to_handle_at: [303, 264],
  // Kernel interfaces with a long record of faults.
  keyctl: [250, 219],
  add_key: [248, 217],
  request_key: [249, 218],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  fanotify_init: [300, 262],
  lookup_dcookie: [212, 18],
  modify_ldt: [154, undefined],
  uselib: [134, undefined],
  nfsservctl: [180, 42],
  move_pages: [279, 239],
  migrate_pages: [256, 238],
  // The machine itself.
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  acct: [163, 89],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  syslog: [103, 116],
  vhangup: [153, 58],
  iopl: [172, undefined],
  ioperm: [173, undefined]
}

/** Looked at more closely: refused for some arguments only. */
export const inspectedCalls = {
  clone: [56, 220],
  clone3: [435, 435],
  openat2: [437, 437],
  ioctl: [16, 29],
  socket: [41, 198],
  socketpair: [53, 199]
} as const satisfies Readonly<Record<string, Numbers>>

/** Calls that give a file its mode: where the mode is, and where flags say whether it counts. */
export interface ModeCall {
  readonly numbers: Numbers | readonly [x64: number, arm64: undefined]
  readonly modeArgument: number
  readonly flagsArgument?: number
}

/** None may make a program that runs with the rights of its owner: the owner may be root. */
export const modeCalls: ReadonlyArray<ModeCall> = [
  { numbers: [90, undefined], modeArgument: 1 }, // chmod
  { numbers: [91, 52], modeArgument: 1 }, // fchmod
  { numbers: [268, 53], modeArgument: 2 }, // fchmodat
  { numbers: [452, 452], modeArgument: 2 }, // fchmodat2
  { numbers: [85, undefined], modeArgument: 1 }, // creat
  { numbers: [133, undefined], modeArgument: 1 }, // mknod
  { numbers: [259, 33], modeArgument: 2 }, // mknodat
  { numbers: [2, undefined], modeArgument: 2, flagsArgument: 1 }, // open
  { numbers: [257, 56], modeArgument: 3, flagsArgument: 2 } // openat
]

export const setIdBits = 0o6000

/** Flags of open that make a file: O_CREAT, and the bit of O_TMPFILE that is its own. */
export const creationFlags = 0x40 | 0x40_0000

/** As the kernel names the machine to a filter. */
export const auditNumber: Readonly<Record<Machine, number>> = { x64: 0xc000_003e, arm64: 0xc000_00b7 }

/** Calls from here on are those of the x32 interface, which would pass under other numbers. */
export const x32Begin = 0x4000_0000

/** Flags of clone that make a namespace. */
export const namespaceFlags =
  0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000

/** Would type into the terminal of another process. */
export const refusedTerminalRequests: ReadonlyArray<number> = [0x5412, 0x541c]

/** Unix, IPv4, IPv6 and netlink, which name resolution asks; no packets, no virtual machines, no Bluetooth. */
export const allowedFamilies: ReadonlyArray<number> = [1, 2, 10, 16]

export const numberOn = (machine: Machine, [x64, arm64]: Numbers): number | undefined =>
  machine === "x64" ? x64 : arm64
