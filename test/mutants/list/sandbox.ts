// Lies in what holds commands: what is mounted is what was planned, names are not followed, homes are not workspaces.
import type { Mutant } from "../Mutant.ts"

const workspaces = ["test/security/workspaces.test.ts"]

export const sandboxMutants: ReadonlyArray<Mutant> = [
  {
    name: "takes a home for a workspace",
    file: "src/sandbox/WorkspaceCheck.ts",
    find: 'const listed = accounts === undefined ? listedHomes() : withReal(["/root", ...homesIn(accounts)])',
    replace: "const listed: ReadonlyArray<string> = []",
    tests: workspaces
  },
  {
    name: "takes a data directory for a workspace",
    file: "src/sandbox/WorkspaceCheck.ts",
    find: '["meta", "journal", "token"].every((name) => existsSync(join(path, name)))',
    replace: '["meta", "journal", "token", "never"].every((name) => existsSync(join(path, name)))',
    tests: workspaces
  },
  {
    name: "does not compare what is mounted with what was planned",
    file: "src/sandbox/Compare.ts",
    find: "if (isAnother(place, inside)) return",
    replace: "if (false) return",
    tests: ["test/sandbox/Compare.test.ts"]
  },
  {
    name: "runs in a sandbox where something can be written to that may not be",
    file: "src/sandbox/Compare.ts",
    find: 'if (kind !== "private" && kind !== "writable" && !found.isReadOnly) return',
    replace: "if (false) return",
    tests: ["test/sandbox/Compare.test.ts"]
  },
  {
    name: "runs in a sandbox with a place that nobody planned",
    file: "src/sandbox/Compare.ts",
    find: "if (other !== undefined) return",
    replace: "if (false) return",
    tests: ["test/sandbox/Compare.test.ts"]
  },
  {
    name: "takes a result from another connection than the one that registered the tool",
    file: "src/tool/remote/RemoteToolRegistry.ts",
    find: "const isOwner = holder.connection === owner.connection",
    replace: "const isOwner = true",
    tests: ["test/e2e/remote.test.ts"]
  },
  {
    name: "lets a client register a name of an MCP server's space",
    file: "src/tool/remote/RemoteToolRegistry.ts",
    find: 'const foreign = specs.find(({ name }) => name.includes("__"))',
    replace: "const foreign = specs.find(() => false)",
    tests: ["test/e2e/remote.test.ts"]
  },
  {
    name: "lets another principal take over the tool of a call that waits",
    file: "src/tool/remote/RemoteToolRegistry.ts",
    find: "const call = open.find(isOther)",
    replace: "const call = open.filter(isOther).at(9)",
    tests: ["test/e2e/remoteRestart.test.ts"]
  },
  {
    name: "shows directories that nobody looked into",
    file: "src/sandbox/Privates.ts",
    find: ", ...unsearched].filter(isThere)",
    replace: "].filter(isThere)",
    tests: ["test/sandbox/Privates.test.ts"]
  }
]
