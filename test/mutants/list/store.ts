// Lies in archive, snapshots, idempotency and blobs: what is removed, kept or trusted without having been checked.
import type { Mutant } from "../Mutant.ts"

const test = (name: string): string => `test/store/${name}.test.ts`

export const storeMutants: ReadonlyArray<Mutant> = [
  {
    name: "removes a log whose archive was not read back",
    file: "src/store/Archive.ts",
    find: "await (await ArchiveReader.open(disk, fresh.path, conversationId)).verify()",
    replace: "",
    tests: [test("Archive")]
  },
  {
    name: "archives a conversation whose last rune is another",
    file: "src/store/Archive.ts",
    find: 'if (last?.kind !== "session.archived") {',
    replace: "if (false) {",
    tests: [test("Archive")]
  },
  {
    name: "archives fewer events than the log has",
    file: "src/store/Archive.ts",
    find: "if (files.at(-1)?.lastEventId !== head) throw wentOn",
    replace: "",
    tests: [test("Archive")]
  },
  {
    name: "keeps an archive beside the log that went on",
    file: "src/store/Archive.ts",
    find: "await this.drop(conversationId)\n      throw wentOn",
    replace: "throw wentOn",
    tests: [test("Archive")]
  },
  {
    name: "does not sync an archive before its log is removed",
    file: "src/store/Archive.ts",
    find: "await fresh.file.sync()",
    replace: "",
    tests: [test("Archive")]
  }
]
