// Lies in archive, snapshots, idempotency and blobs: what is removed, kept or trusted without having been checked.
import type { Mutant } from "../Mutant.ts"

const test = (name: string): string => `test/store/${name}.test.ts`

export const storeMutants: ReadonlyArray<Mutant> = [
  {
    name: "lets a listener that throws spoil an append",
    file: "src/contract/Channel.ts",
    find: "this.onFailed(name, error)",
    replace: "throw error",
    tests: [test("Store"), "test/contract/DurableNotices.test.ts"]
  },
  {
    name: "does not announce a restored conversation",
    file: "src/store/Store.ts",
    find: 'this.notices.appeared(conversationId, "restored")',
    replace: "",
    tests: [test("Store")]
  },
  {
    name: "removes a log whose archive was not read back",
    file: "src/store/archive/Archive.ts",
    find: "await (await ArchiveReader.open(disk, fresh.path, conversationId)).verify()",
    replace: "",
    tests: [test("archive/Archive")]
  },
  {
    name: "archives a conversation whose last rune is another",
    file: "src/store/archive/Archive.ts",
    find: 'if (last?.kind !== "session.archived") {',
    replace: "if (false) {",
    tests: [test("archive/Archive")]
  },
  {
    name: "keeps an archive beside the log that went on",
    file: "src/store/archive/Archive.ts",
    find: "await this.drop(conversationId)\n      throw wentOn",
    replace: "throw wentOn",
    tests: [test("archive/Archive")]
  },
  {
    name: "removes a log before the name of its archive is durable",
    file: "src/store/Files.ts",
    find: "await disk.syncDirectory(posix.dirname(name))",
    replace: "",
    tests: [test("archive/Archive")]
  },
  {
    name: "takes a snapshot of an event that the log does not hold",
    file: "src/store/Snapshots.ts",
    find: 'if ((await this.options.eventSum(conversationId, eventId)) !== header.event_sum) return "other_event"',
    replace: "",
    tests: [test("Snapshots")]
  },
  {
    name: "takes a snapshot whose digest is wrong",
    file: "src/store/Snapshots.ts",
    find: 'if (hash("sha256", text, "hex") !== header.sha256) return "hash_mismatch"',
    replace: "",
    tests: [test("Snapshots")]
  }
]
