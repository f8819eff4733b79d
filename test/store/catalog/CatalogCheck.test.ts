// Goal: the catalog is held against the logs beside everything else. Method: a check over heads that are all in memory,
// with somebody else who wants a turn.
import { expect, it } from "vitest"
import { checkCatalog } from "#src/store/catalog/CatalogCheck.ts"

it("lets others go on while it compares heads that nobody has to read", async () => {
  const ids = Array.from({ length: 2000 }, (_, number) => `conv_${number}`)
  let compared = 0
  let comparedAtTurn = 0
  let most = 0
  let isOver = false
  const turn = (): void => {
    most = Math.max(most, compared - comparedAtTurn)
    comparedAtTurn = compared
    if (!isOver) setImmediate(turn)
  }
  turn()
  const report = await checkCatalog(
    {
      conversations: async () => ids,
      head: async () => {
        compared += 1
        return 4
      },
      known: () => 4,
      rows: () => [],
      doubt: () => undefined,
      flush: async () => undefined,
      doubted: () => 0,
      isClosed: () => false
    },
    { suspects: ids, only: "suspects" }
  )
  isOver = true
  turn()
  expect(report).toEqual({ checked: 2000, doubted: 0, surplus: 0 })
  expect(compared).toBe(2000)
  expect(most).toBeLessThan(500)
})
