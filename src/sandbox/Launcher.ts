// What runs before the sandbox begins: a few lines of Perl, which every Debian has, because neither Node nor a shell can
// make these system calls. They give the command a mount namespace and put what it shall find where the sandbox can
// reach it: every path is opened component by component without following a link, compared with the plan, and mounted
// by its descriptor, what is protected inside it as well. No name is looked up twice, so there is none to be exchanged in
// between. For a server that is root they also translate owners and take every privilege away.
import type { FileFacts } from "./Handle.ts"
import type { Machine } from "./SystemCalls.ts"

/** A path that the command sees, and what has to be found there. */
export interface Tree {
  readonly path: string
  readonly kind: "writable" | "readonly"
  readonly file: FileFacts
  /** Owner on disk whose files shall look like the user's own; nothing is translated without it. */
  readonly owner?: Identity
  /** Places in it, from the top, by the way that leads there from its root. */
  readonly inner: ReadonlyArray<InnerPlace>
}

export interface InnerPlace {
  readonly way: string
  readonly kind: "writable" | "readonly" | "empty" | "private" | "blank"
  readonly file: FileFacts
}

export interface Identity {
  readonly uid: number
  readonly gid: number
}

/** Where a tree is found once the launcher has begun. */
export const stagedAt = (index: number): string => `/tmp/${index}`

/** The launcher ends with this when it could not begin, and says why on the control descriptor. */
export const launcherExitCode = 125

/** Who the command shall be: whoever runs the server, somebody else, or root. */
export type LauncherMode = "user" | "drop" | "root"

const numbers: Readonly<Record<Machine, { readonly [name: string]: number }>> = {
  x64: { close: 3, write: 1, unshare: 272, mount: 165, prctl: 157, setresuid: 117, setresgid: 119, noFollow: 0x2_0000 },
  arm64: { close: 57, write: 64, unshare: 97, mount: 40, prctl: 167, setresuid: 147, setresgid: 149, noFollow: 0x8000 }
}

/** Says on the control descriptor why it does not go on. */
const reports = (call: { readonly [name: string]: number }): string => `
sub report { my $text = "$_[0]\\n"; syscall(${call["write"]}, $control, $text, length($text)); exit ${launcherExitCode} }
sub fail { report("f$_[0]: $!") }
sub violated { report("v$_[0]") }`

/** A path that leads through a link, or out of where it began, is one that somebody else has laid. */
const paths = (call: { readonly [name: string]: number }): string => `
sub reach {
  my ($from, $way, $resolve, $file, $what) = @_;
  my $how = pack("QQQ", 0x280000 | ${call["noFollow"]}, 0, $resolve);
  my $found = syscall(437, $from, $way, $how, 24);
  violated("$what leads elsewhere") if $found < 0 && ($! + 0 == 40 || $! + 0 == 18);
  $found >= 0 or fail("reach $what");
  my @facts = stat("/proc/self/fd/$found") or fail("look at $what");
  violated("$what is a link") if ($facts[2] & 0170000) == 0120000;
  violated("$what is not what was planned") if "$facts[0]:$facts[1]" ne $file;
  return $found;
}
sub clone {
  my ($from, $what, $add, $space) = @_;
  my $tree = syscall(428, $from, $empty, 0x89001);
  $tree >= 0 or fail("copy $what");
  my $wish = pack("QQQQ", $add, 0, 0, $space);
  syscall(442, $tree, $empty, 0x9000, $wish, 32) == 0 or fail("protect $what");
  return $tree;
}
sub cover {
  my ($tree, $way, $kind, $file, $source) = @_;
  my $place = reach($tree, $way, 0xe, $file, $way);
  if ($kind eq "empty" || $kind eq "private") {
    my ($target, $flags) = ("/proc/self/fd/$place", $kind eq "empty" ? 7 : 6);
    my $wish = "mode=0755,uid=$uid,gid=$gid,size=" . ($kind eq "empty" ? $emptyBytes : $privateBytes);
    return syscall(${call["mount"]}, $none, $target, $type, $flags, $wish) == 0 || fail("hide $way");
  }
  my $null = "/dev/null";
  my $how = pack("QQQ", 0x280000, 0, 0);
  my $from = $kind eq "blank" ? syscall(437, $here, $null, $how, 24) : $source;
  my $copy = clone($from, $way, $kind eq "writable" ? 6 : 7, 0);
  syscall(429, $copy, $empty, $place, $empty, 0x44) == 0 or fail("mount $way");
  syscall(${call["close"]}, $_) for $place, $copy, $from;
}`

const translation = (call: { readonly [name: string]: number }): string => `
sub translation {
  my ($from, $group) = @_;
  pipe(my $ready, my $tell) or fail("pipe");
  pipe(my $done, my $finish) or fail("pipe");
  my $child = fork() // fail("fork");
  if (!$child) {
    close $finish;
    syscall(${call["unshare"]}, 0x10000000) == 0 or fail("user namespace");
    syswrite($tell, "x"); sysread($done, my $byte, 1); exit 0;
  }
  close $tell; close $done;
  sysread($ready, my $byte, 1) or fail("user namespace");
  for (["uid_map", "$from $uid 1\\n"], ["gid_map", "$group $gid 1\\n"]) {
    open(my $map, ">", "/proc/$child/$_->[0]") or fail("map");
    defined syswrite($map, $_->[1]) or fail("map");
  }
  open(my $space, "<", "/proc/$child/ns/user") or fail("user namespace");
  close $finish; waitpid($child, 0);
  return $space;
}`

/** An ordinary user may mount in a user namespace of its own, where it stays who it is. */
const namespace = (call: { readonly [name: string]: number }): string => `
syscall(${call["unshare"]}, $mode eq "user" ? 0x10020000 : 0x20000) == 0 or fail("mount namespace");
if ($mode eq "user") {
  for (["setgroups", "deny"], ["uid_map", "$uid $uid 1\\n"], ["gid_map", "$gid $gid 1\\n"]) {
    open(my $map, ">", "/proc/self/$_->[0]") or fail("map");
    defined syswrite($map, $_->[1]) or fail("map");
  }
}
syscall(${call["mount"]}, $none, $root, 0, 0x44000, 0) == 0 or fail("private mounts");`

const descriptors = (call: { readonly [name: string]: number }): string => `
opendir(my $open, "/proc/self/fd") or fail("descriptors");
for (grep { /^\\d+$/ && $_ > $kept && $_ != fileno($open) } readdir $open) { syscall(${call["close"]}, $_ + 0) }
closedir $open;`

const scriptFor = (machine: Machine): string => {
  const call = numbers[machine]
  return `
our ($mode, $control, $uid, $gid, $parent, $kept, $emptyBytes, $privateBytes, $count) =
  (shift(@ARGV), map { $_ + 0 } splice(@ARGV, 0, 8));
our ($here, $empty, $none, $type) = (-100, "", "none", "tmpfs");
my ($root, $place, $size) = ("/", "/tmp", "mode=0755,size=256k");
chdir "/" or fail("root directory");
${descriptors(call)}
${namespace(call)}
my (@trees, @inner, %spaces);
for (1 .. $count) {
  my ($path, $kind, $file, $from, $group, $places) = splice(@ARGV, 0, 6);
  my $found = reach($here, $path, 0x6, $file, $path);
  my $space = $from < 0 ? undef : ($spaces{"$from:$group"} //= translation($from, $group));
  my $add = ($kind eq "writable" ? 6 : 7) | (defined $space ? 0x100000 : 0);
  push @trees, clone($found, $path, $add, defined $space ? fileno($space) : 0);
  push @inner, [splice(@ARGV, 0, 3 * $places)];
}
syscall(${call["mount"]}, $none, $place, $type, 6, $size) == 0 or fail("staging place");
for my $index (0 .. $#trees) {
  my ($tree, $target) = ($trees[$index], "/tmp/$index");
  my @facts = stat("/proc/self/fd/$tree");
  if (-d _) { mkdir $target or fail("stage") } else { open(my $file, ">", $target) or fail("stage") }
  syscall(429, $tree, $empty, $here, $target, 4) == 0 or fail("stage");
  my @given = @{$inner[$index]};
  my @places;
  while (my ($way, $kind, $file) = splice(@given, 0, 3)) { push @places, [$way, $kind, $file] }
  # From the tree as it was: what is covered on the way to a place does not count for it.
  my @sources = map { reach($tree, $_->[0], 0xe, $_->[2], $_->[0]) } @places;
  cover($tree, @{$places[$_]}, $sources[$_]) for 0 .. $#places;
}
if ($mode eq "drop") {
  $uid > 0 && $gid > 0 or fail("identity");
  $) = "$gid $gid";
  syscall(${call["setresgid"]}, $gid, $gid, $gid) == 0 or fail("group");
  syscall(${call["setresuid"]}, $uid, $uid, $uid) == 0 or fail("user");
  $< == $uid && $> == $uid && $( + 0 == $gid && $) eq "$gid $gid" or fail("identity");
}
syscall(${call["prctl"]}, 38, 1, 0, 0, 0) == 0 or fail("privileges");
getppid() == $parent or exit ${launcherExitCode};
exec { $ARGV[0] } @ARGV or fail("start $ARGV[0]");
${reports(call)}
${paths(call)}
${translation(call)}`
}

const scripts = new Map<Machine, string>()

const script = (machine: Machine): string => {
  const known = scripts.get(machine) ?? scriptFor(machine)
  scripts.set(machine, known)
  return known
}

const identified = ({ dev, ino }: FileFacts): string => `${dev}:${ino}`

const treeArguments = ({ file, inner, kind, owner, path }: Tree): ReadonlyArray<string> => [
  ...[path, kind, identified(file), String(owner?.uid ?? -1), String(owner?.gid ?? -1), String(inner.length)],
  ...inner.flatMap((place) => [place.way, place.kind, identified(place.file)])
]

export interface LaunchOptions {
  readonly perl: string
  readonly machine: Machine
  readonly mode: LauncherMode
  readonly identity: Identity
  readonly trees: ReadonlyArray<Tree>
  /** Where it says why it did not go on. */
  readonly control: number
  /** The highest descriptor that goes on to the command; whatever else this process was left with is closed. */
  readonly descriptorMax: number
  readonly emptyBytes: number
  readonly privateBytes: number
  readonly command: ReadonlyArray<string>
}

/** The command line that lays out the trees, becomes the identity, and goes on as the command. */
export const launch = (options: LaunchOptions): { readonly file: string; readonly args: ReadonlyArray<string> } => {
  const { control, descriptorMax, emptyBytes, identity, mode, privateBytes, trees } = options
  const facts = [
    control,
    identity.uid,
    identity.gid,
    process.pid,
    descriptorMax,
    emptyBytes,
    privateBytes,
    trees.length
  ]
  return {
    file: options.perl,
    args: [
      ...["-e", script(options.machine), "--", mode],
      ...facts.map(String),
      ...trees.flatMap(treeArguments),
      ...options.command
    ]
  }
}
