// Lies in what guards the server's feeds: who may connect, who is behind, what a follower is shown and how often.
import type { Mutant } from "../Mutant.ts"

export const feedMutants: ReadonlyArray<Mutant> = [
  {
    name: "honors a ticket that has expired",
    file: "src/server/Auth.ts",
    find: "return known !== undefined && known.expiresMs > this.nowMs() ? known.principal : undefined",
    replace: "return known?.principal",
    tests: ["test/server/Auth.test.ts"]
  },
  {
    name: "honors a ticket twice",
    file: "src/server/Auth.ts",
    find: "this.tickets.delete(key)\n    return known",
    replace: "return known",
    tests: ["test/security/HttpListener.test.ts"]
  },
  {
    name: "serves a page of somebody else's",
    file: "src/server/Auth.ts",
    find: 'if (origin === undefined) return "welcome"',
    replace: 'if (origin !== "") return "welcome"',
    tests: ["test/security/HttpListener.test.ts"]
  },
  {
    name: "serves under a name that was made to point here",
    file: "src/server/Auth.ts",
    find: 'if (host === undefined || !hosts.has(host)) return "wrong_host"',
    replace: "",
    tests: ["test/security/HttpListener.test.ts"]
  },
  {
    name: "moves a topic to where a reader claims to be",
    file: "src/server/feed/ConversationFeed.ts",
    find: "if (this.atHead.size === 0 && !this.pumping) this.cursor = reader.cursor",
    replace: "this.cursor = reader.cursor",
    tests: ["test/server/feed/ConversationFeed.test.ts", "test/server/feed/AllFeed.test.ts"]
  },
  {
    name: "writes to a reader whose socket is full",
    file: "src/server/feed/ConversationFeed.ts",
    find: "if (reader.sink.pendingBytes() > limits.socketBytesMax) {",
    replace: "if (false) {",
    tests: ["test/server/feed/ConversationFeed.test.ts"]
  },
  {
    name: "writes a page twice to a reader that has it",
    file: "src/server/feed/ConversationFeed.ts",
    find: "if (reader.cursor >= page.next) continue",
    replace: "",
    tests: ["test/server/feed/ConversationFeed.test.ts", "test/server/feed/AllFeed.test.ts"]
  },
  {
    name: "writes the runes of a page again that a reader has had",
    file: "src/server/feed/ConversationFeed.ts",
    find: "if (frame.lastEventId <= after) continue",
    replace: "",
    tests: ["test/server/feed/ConversationFeed.test.ts", "test/server/feed/AllFeed.test.ts"]
  },
  {
    name: "reads for ever what brings nothing",
    file: "src/server/feed/ReadProgress.ts",
    find: "if (emptyPages > limits.emptyPagesMax) throw new FeedStuck({ after, head })",
    replace: "",
    tests: ["test/server/feed/ConversationFeed.test.ts"]
  },
  {
    name: "hands out a rune twice to the reader of one conversation",
    file: "src/client/Position.ts",
    find: "if (frame.rune.event_id <= before) return undefined",
    replace: "",
    tests: ["test/client/Client.test.ts"]
  },
  {
    name: "hands out a rune twice to the reader of all conversations",
    file: "src/client/Position.ts",
    find: "if (eventId <= (this.heard.get(id) ?? 0)) return false",
    replace: "",
    tests: ["test/client/Client.test.ts"]
  }
]
