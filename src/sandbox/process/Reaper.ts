// Ends what a killed server could not: a sandbox that was being made at that moment, whose first process is gone before it
// has told the second one to go on, and programs that nothing contains. One small shell for all of them reads which groups
// of processes those are, and ends them when it hears nothing more because its server is gone.
import { type ChildProcess, spawn } from "node:child_process"

/** Keeps the last whole line it was given; one that is cut off by the end counts for nothing. */
const script = `groups=; while read -r line; do groups=$line; done; for g in $groups; do kill -9 "-$g"; done 2>/dev/null`

export class Reaper {
  private readonly groups = new Set<number>()
  private child: ChildProcess | undefined

  /** From now on the group ends with the server. */
  add(group: number): void {
    this.groups.add(group)
    this.tell()
  }

  /** It is over, or ends with the server by itself. */
  remove(group: number): void {
    if (this.groups.delete(group)) this.tell()
  }

  close(): void {
    this.groups.clear()
    this.child?.stdin?.end("\n")
    this.child = undefined
  }

  private tell(): void {
    this.child ??= this.begin()
    this.child.stdin?.write(`${[...this.groups].join(" ")}\n`)
  }

  private begin(): ChildProcess {
    const child = spawn("/bin/sh", ["-c", script], {
      cwd: "/",
      env: {},
      detached: true,
      stdio: ["pipe", "ignore", "ignore"]
    })
    const gone = (): void => {
      if (this.child === child) this.child = undefined
    }
    // Without it a killed server leaves what it would have ended to the next start.
    child.on("error", gone)
    child.on("exit", gone)
    child.stdin?.on("error", gone)
    child.unref()
    const stream = child.stdin as unknown as { readonly unref?: () => void } | null
    stream?.unref?.()
    return child
  }
}
