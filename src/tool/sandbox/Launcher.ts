// How a server that runs as root starts a command that does not. A few lines of Perl, which every Debian has, do in one
// process what would take several programs: they give it a mount namespace, put the roots it may write to where its
// user can reach them, with owners translated so that what it writes belongs to whoever owns the root, and take every
// privilege away before the sandbox begins. Its environment is empty, so that nothing a request says reaches it.
import type { Machine } from "./SystemCalls.ts"

/** A path that the command sees although its user could not reach it. */
export interface Staged {
  readonly path: string
  /** Owner on disk whose files shall look like the user's own; nothing is translated without it. */
  readonly owner?: { readonly uid: number; readonly gid: number }
}

export interface Identity {
  readonly uid: number
  readonly gid: number
}

/** Where a staged path is found once the launcher has begun. */
export const stagedAt = (index: number): string => `/tmp/${index}`

/** The launcher ends with this when it could not begin, and says why on standard error. */
export const launcherExitCode = 125
export const launcherPrefix = "echs-launcher: "

const numbers: Readonly<Record<Machine, { readonly [name: string]: number }>> = {
  x64: { close: 3, unshare: 272, mount: 165, prctl: 157, setresuid: 117, setresgid: 119 },
  arm64: { close: 57, unshare: 97, mount: 40, prctl: 167, setresuid: 147, setresgid: 149 }
}

/** Closes every descriptor above $kept. */
const closeOthers = (closeNumber: number | undefined): string => `
opendir(my $open, "/proc/self/fd") or fail("descriptors");
for (grep { /^\\d+$/ && $_ > $kept && $_ != fileno($open) } readdir $open) { syscall(${closeNumber}, $_ + 0) }
closedir $open;`

const closingScript = (machine: Machine): string => `
use strict;
sub fail { print STDERR "${launcherPrefix}$_[0]: $!\\n"; exit ${launcherExitCode} }
my $kept = shift(@ARGV) + 0;
${closeOthers(numbers[machine]["close"])}
exec { $ARGV[0] } @ARGV or fail("start $ARGV[0]");`

const script = (machine: Machine): string => {
  const call = numbers[machine]
  return `
use strict;
sub fail { print STDERR "${launcherPrefix}$_[0]: $!\\n"; exit ${launcherExitCode} }
my ($uid, $gid, $parent, $kept, $count) = map { $_ + 0 } splice(@ARGV, 0, 5);
$uid > 0 && $gid > 0 or fail("identity");
my ($here, $empty, $none, $type, $mode) = (-100, "", "none", "tmpfs", "mode=0755,size=64k");
my ($root, $place) = ("/", "/tmp");
chdir "/" or fail("root directory");
syscall(${call["unshare"]}, 0x20000) == 0 or fail("mount namespace");
syscall(${call["mount"]}, $none, $root, 0, 0x44000, 0) == 0 or fail("private mounts");
${closeOthers(call["close"])}
my (@trees, %spaces);
for (1 .. $count) {
  my ($path, $from, $group) = splice(@ARGV, 0, 3);
  my $tree = syscall(428, $here, $path, 0x88001);
  $tree >= 0 or fail("reach $path");
  push @trees, $tree;
  next if $from < 0;
  my $space = $spaces{"$from:$group"} //= translation($from, $group);
  my $wish = pack("QQQQ", 0x100000, 0, 0, fileno($space));
  syscall(442, $tree, $empty, 0x9000, $wish, 32) == 0 or fail("translate owners of $path");
}
syscall(${call["mount"]}, $none, $place, $type, 6, $mode) == 0 or fail("staging place");
for my $index (0 .. $#trees) {
  my $target = "/tmp/$index";
  my @facts = stat("/proc/self/fd/$trees[$index]");
  if (-d _) { mkdir $target or fail("stage") } else { open(my $file, ">", $target) or fail("stage") }
  syscall(429, $trees[$index], $empty, $here, $target, 4) == 0 or fail("stage");
}
$) = "$gid $gid";
syscall(${call["setresgid"]}, $gid, $gid, $gid) == 0 or fail("group");
syscall(${call["setresuid"]}, $uid, $uid, $uid) == 0 or fail("user");
syscall(${call["prctl"]}, 38, 1, 0, 0, 0) == 0 or fail("privileges");
# Ends with the server, also when that ended before this line.
syscall(${call["prctl"]}, 1, 9, 0, 0, 0) == 0 or fail("end with the server");
getppid() == $parent or exit ${launcherExitCode};
$< == $uid && $> == $uid && $( + 0 == $gid && $) eq "$gid $gid" or fail("identity");
exec { $ARGV[0] } @ARGV or fail("start $ARGV[0]");

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
}

/** The command line that drops to the identity, stages the paths, and goes on as the command. */
export const launch = (options: {
  readonly perl: string
  readonly machine: Machine
  readonly identity: Identity
  readonly staged: ReadonlyArray<Staged>
  /** The highest descriptor that goes on to the command; whatever else this process was left with is closed. */
  readonly descriptorMax: number
  readonly command: ReadonlyArray<string>
}): { readonly file: string; readonly args: ReadonlyArray<string> } => ({
  file: options.perl,
  args: [
    "-e",
    script(options.machine),
    "--",
    String(options.identity.uid),
    String(options.identity.gid),
    String(process.pid),
    String(options.descriptorMax),
    String(options.staged.length),
    ...options.staged.flatMap(({ owner, path }) => [path, String(owner?.uid ?? -1), String(owner?.gid ?? -1)]),
    ...options.command
  ]
})

/** The command line that leaves behind every descriptor but the command's own, and goes on as the command. */
export const launchClosing = (options: {
  readonly perl: string
  readonly machine: Machine
  readonly descriptorMax: number
  readonly command: ReadonlyArray<string>
}): { readonly file: string; readonly args: ReadonlyArray<string> } => ({
  file: options.perl,
  args: ["-e", closingScript(options.machine), "--", String(options.descriptorMax), ...options.command]
})
