// The programs that do what they are named for and start no other, whatever their arguments say. A rule against a command
// can be sure of these alone: any program that is not here may run another, by an argument, a script or its settings.
import type { SimpleCommand } from "./ShellCommand.ts"

const names: ReadonlySet<string> = new Set([
  // Look at files and at the machine.
  ..."ls cat head tail wc nl tac rev od xxd hexdump stat du df basename dirname realpath readlink pwd cd".split(" "),
  ..."grep egrep fgrep cmp comm diff uname whoami id groups hostname nproc uptime free ps date cal".split(" "),
  // Work on text.
  ..."echo printf seq yes tr cut paste join uniq sort shuf fold fmt expand unexpand tsort jq numfmt".split(" "),
  ..."md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum base32 base64".split(" "),
  // Work on files.
  ..."mkdir rmdir touch cp mv rm ln chmod chown chgrp truncate mktemp tee dd sync".split(" "),
  ..."true false sleep kill".split(" ")
])

/** Arguments by which a program that is simple otherwise starts another, or has the shell do it. */
const exceptions: Readonly<Record<string, RegExp>> = {
  // --compress-program, which may be cut short.
  sort: /^--c/su,
  // Its output through another program.
  diff: /^(-[A-Za-z0-9]*l|--pag)/su,
  // A variable that later words or programs are found by, or whose name the shell works out.
  printf: /^-v/su
}

/** Where programs of the system lie; a program of the same name elsewhere is another one. */
const places: ReadonlyArray<string> = ["", "/bin/", "/usr/bin/"]

/** It starts no other program, whatever it is told. */
export const isSimple = ([program = "", ...words]: SimpleCommand): boolean => {
  const name = program.slice(program.lastIndexOf("/") + 1)
  const isOfTheSystem = places.includes(program.slice(0, program.length - name.length))
  return isOfTheSystem && names.has(name) && !words.some((word) => exceptions[name]?.test(word) === true)
}
