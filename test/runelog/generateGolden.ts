// Writes runelog/testdata for the current format version, once: what is there is never written again, because readers of
// all versions to come are tested with it. Run with `node test/runelog/generateGolden.ts`.
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { directory, diskOf } from "./Fixture.ts"
import { contentOfDirectory, filesOf, scenarios } from "./GoldenScenarios.ts"

const target = fileURLToPath(new URL("../../runelog/testdata/v1.1/", import.meta.url))

for (const scenario of Object.keys(scenarios)) {
  const place = join(target, scenario)
  if (existsSync(place)) {
    process.stdout.write(`${place} is there already\n`)
    continue
  }
  const files = await filesOf(scenario)
  for (const [path, content] of files) {
    const file = join(place, path.slice(directory.length))
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
  }
  const expected = await contentOfDirectory(await diskOf(files))
  writeFileSync(join(target, `${scenario}.json`), `${JSON.stringify(expected, null, 2)}\n`)
  process.stdout.write(`${place} written\n`)
}
