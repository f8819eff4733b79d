// The goal of the demo and the directory it works in, for `echs demo` and for the page. A scripted model plays it: no key,
// no network.
import { mkdir, mkdtemp, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

const check = `# A menu is complete when it has a heading and at least four dishes with their prices.
head -n 1 "$1" | grep -q 'of the day' && test "$(grep -c '[0-9]$' "$1")" -ge 4 && echo "the menu is complete"
`

/** Files of the menu are written without asking; commands need an approval. */
const policy = {
  mode: "auto",
  rules: [
    { decision: "allow", tool: ["write_file", "edit_file"], path: ["menu/**"], access: "write", uncontained: true }
  ]
} as const

const demoGoal = {
  goal: "Write the menu of the café. check.sh says when it is complete.",
  title: "demo",
  model: "scripted/demo-goal",
  policy
} as const

export type DemoGoal = typeof demoGoal & { readonly workspace: string }

/** Lays out the workspace; answers with what `goal.submit` takes. */
export const prepareDemo = async (workspace: string): Promise<DemoGoal> => {
  await mkdir(join(workspace, "menu"), { recursive: true })
  await writeFile(join(workspace, "check.sh"), check)
  return { ...demoGoal, workspace }
}

/** The same in a temporary directory of its own, which the system clears away. */
export const prepareDemoAnywhere = async (): Promise<DemoGoal> =>
  prepareDemo(join(await mkdtemp(join(tmpdir(), "echs-demo-")), "workspace"))
