// The names that are raced for, each with what it is exchanged for: a link to a secret, and one that leads out by the
// way on which the sandbox still sees the old root while it is made.
import { join } from "node:path"

export interface Racer {
  readonly name: string
  readonly target: string
  readonly probes: ReadonlyArray<string>
  readonly request: (workspace: string) => {
    readonly directory: string
    readonly writable: ReadonlyArray<string>
    readonly readable?: ReadonlyArray<string>
  }
}

const files: ReadonlyArray<string> = [
  ...[".git/config", ".git/config.worktree", ".git/commondir"],
  ...[".git/worktrees/side/commondir", ".git/worktrees/side/config.worktree"],
  ...[".git/modules/part/config", ".git/modules/part/commondir", ".git/modules/part/config.worktree"]
]

const directories: ReadonlyArray<string> = [
  ...[".git", ".git/hooks", ".git/worktrees", ".git/worktrees/side"],
  ...[".git/modules", ".git/modules/part", ".git/modules/part/hooks"]
]

const whole: Racer["request"] = (workspace) => ({ directory: workspace, writable: [workspace] })
const below: Racer["request"] = (workspace) => ({
  directory: join(workspace, "sub", "inner"),
  writable: [join(workspace, "sub", "inner")]
})
const beside: Racer["request"] = (workspace) => ({
  directory: join(workspace, ".git", "refs"),
  writable: [join(workspace, ".git", "refs")],
  readable: [join(workspace, "sub")]
})

export const racers = (places: {
  readonly data: string
  readonly home: string
  readonly outside: string
}): ReadonlyArray<Racer> => {
  const { data, home, outside } = places
  const [key, token] = [join(home, ".ssh"), join(data, "token")]
  return [
    ...files.flatMap((name) =>
      [token, `/oldroot${outside}/made`, `/oldroot${outside}/file`].map((target) => ({
        name,
        target,
        probes: [name],
        request: whole
      }))
    ),
    ...directories.flatMap((name) =>
      [key, `/oldroot${outside}`].map((target) => ({ name, target, probes: [name], request: whole }))
    ),
    ...[key, outside, `/oldroot${outside}`].flatMap((target) => [
      { name: "sub/inner", target, probes: ["."], request: below },
      { name: "sub", target, probes: ["../../sub"], request: beside }
    ])
  ]
}
