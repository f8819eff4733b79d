// Lies in what guards the server's feeds: who may connect, who is behind, what a follower is shown and how often.
import type { Mutant } from "../Mutant.ts"

export const feedMutants: ReadonlyArray<Mutant> = [
  {
    name: "honors a ticket that has expired",
    file: "src/server/Auth.ts",
    find: "return known !== undefined && known.expiresMs > this.nowMs() ? known.principal : undefined",
    replace: "return known?.principal",
    tests: ["test/security/Door.test.ts"]
  },
  {
    name: "honors a ticket twice",
    file: "src/server/Auth.ts",
    find: "this.tickets.delete(key)\n    return known",
    replace: "return known",
    tests: ["test/security/Door.test.ts"]
  },
  {
    name: "serves a page of somebody else's",
    file: "src/server/Auth.ts",
    find: 'if (origin === undefined) return "welcome"',
    replace: 'if (origin !== "") return "welcome"',
    tests: ["test/security/Door.test.ts"]
  },
  {
    name: "serves under a name that was made to point here",
    file: "src/server/Auth.ts",
    find: 'if (host === undefined || !hosts.has(host)) return "wrong_host"',
    replace: "",
    tests: ["test/security/Door.test.ts"]
  }
]
