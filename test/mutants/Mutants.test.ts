// Goal: the list of mutants keeps up with the code. Method: every entry is applied to today's source in memory, and the
// runner is shown a lie that its test catches, one that nobody looks for, and one that does not load.
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "vitest"
import { mutants } from "./list.ts"
import { type Mutant, mutate } from "./Mutant.ts"
import { Sandbox } from "./Sandbox.ts"

const top = join(dirname(fileURLToPath(import.meta.url)), "../..")
const atLeast = 60

describe("the list of mutants", () => {
  it(`has at least ${atLeast} entries, each with a name of its own`, () => {
    expect(mutants.length).toBeGreaterThanOrEqual(atLeast)
    expect(new Set(mutants.map(({ file, name }) => `${file}: ${name}`)).size).toBe(mutants.length)
  })

  it.each(mutants.map((mutant) => [`${mutant.file}: ${mutant.name}`, mutant] as const))(
    "%s fits the code",
    (_, mutant) => {
      const source = readFileSync(join(top, mutant.file), "utf8")
      expect(mutate(source, mutant)).not.toBe(source)
      for (const test of mutant.tests) expect(existsSync(join(top, test)), test).toBe(true)
      expect(mutant.tests.length).toBeGreaterThan(0)
    }
  )

  it("refuses a text that stands in the file twice", () => {
    const twice: Mutant = { name: "twice", file: "x.ts", find: "a", replace: "b", tests: [] }
    expect(() => mutate("a a", twice)).toThrow("2 times")
  })
})

describe("the runner", () => {
  const sandbox = new Sandbox(top)
  afterAll(() => sandbox.close())
  const lie = (find: string, replace: string): Mutant => ({
    name: "of this test",
    file: "runelog/U64.ts",
    find,
    replace,
    tests: ["test/runelog/U64.test.ts"]
  })

  it("tells a caught mutant from one that survives and one that does not load", async () => {
    expect(await sandbox.tryMutant(lie("2 ** 32", "4_294_967_296"))).toEqual({ _tag: "Survived" })
    expect(await sandbox.tryMutant(lie("2 ** 32", "2 ** 31"))).toMatchObject({ _tag: "Caught" })
    expect(await sandbox.tryMutant(lie("2 ** 32", "2 ** ** 32"))).toMatchObject({ _tag: "Broken" })
  })
})
