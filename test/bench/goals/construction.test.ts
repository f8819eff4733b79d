// Goal: the campaign is what it says: its repositories tell right from wrong, its judge sees what no model does, and every
// personality is drawn. Method: each solution against each check, with real programs.
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { useWorkspaces } from "../../support/autonomy/workplace.ts"
import { randomFrom, seedFor } from "../../support/seed.ts"
import { personalities } from "./personalities.ts"
import { castOf, judge, makeWorkspace } from "./pursuit.ts"
import { repositoriesHere, type Solution } from "./repositories.ts"

const workspaces = useWorkspaces()

describe("a repository of the campaign", () => {
  it.each(repositoriesHere().map((one) => [one.name, one] as const))(
    "%s tells solutions apart",
    (_name, repository) => {
      const workspace = workspaces.make()
      makeWorkspace(workspace, repository)
      expect(judge(workspace, { repository })).toEqual({ isRight: false, isShown: false })
      const verdict = (solution: Solution) => {
        writeFileSync(join(workspace, repository.source), repository.solutions[solution])
        return judge(workspace, { repository })
      }
      expect(verdict("wrong")).toEqual({ isRight: false, isShown: false })
      expect(verdict("overfit")).toEqual({ isRight: false, isShown: true })
      writeFileSync(join(workspace, repository.tests), repository.bentTests)
      expect(verdict("wrong")).toEqual({ isRight: false, isShown: false })
      expect(verdict("right")).toEqual({ isRight: true, isShown: true })
    }
  )
})

describe("the casts of the campaign", () => {
  it("draw every personality, with at most one who is not fair", () => {
    const random = randomFrom(seedFor("casts"))
    const all = Object.values(personalities).flat()
    expect(all.length).toBeGreaterThanOrEqual(40)
    const casts = all.map((_, nth) => castOf(nth, random))
    expect(new Set(casts.flatMap(({ critic, planner, worker }) => [critic, planner, worker])).size).toBe(all.length)
    for (const { critic, planner, worker } of casts)
      expect([critic, planner, worker].filter(({ isFair }) => isFair !== true).length).toBeLessThanOrEqual(1)
  })
})
