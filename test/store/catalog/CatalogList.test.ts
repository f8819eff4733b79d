// Goal: every filter finds what a plain scan would find, pages neither repeat nor leave out, and a hundred thousand
// conversations are listed in milliseconds. Method: random rows held against filtering an array; a large table timed.
import * as fc from "fast-check"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { CatalogDatabase, MEMORY, searchText } from "#src/store/catalog/CatalogDatabase.ts"
import { encodeCursor, type ListRequest, listRows } from "#src/store/catalog/CatalogList.ts"
import { type ConversationStatus, emptyRow, type RowState, statuses } from "#src/store/catalog/CatalogRow.ts"
import { limits } from "#src/store/StoreLimits.ts"
import { costMicros } from "../../support/cost.ts"
import { count } from "../../support/counts.ts"
import { seedFor } from "../../support/seed.ts"
import { conversationIdOf, type Place, realPlace } from "../support.ts"

let catalog: CatalogDatabase
beforeEach(() => {
  catalog = CatalogDatabase.open(MEMORY, "here").catalog
})
afterEach(() => catalog.close({ clean: true }))

const save = (rows: ReadonlyArray<RowState>): void =>
  catalog.transaction(() => {
    for (const row of rows) catalog.save({ row, damaged: undefined })
  })

interface Shape {
  readonly title?: string
  readonly state?: ConversationStatus
  readonly labels?: Record<string, string>
  readonly createdMs?: number
}

const rowWith = (number: number, shape: Shape): RowState => ({
  ...emptyRow(conversationIdOf(number)),
  title: shape.title ?? "",
  view: { ...emptyRow("").view, session: shape.state ?? "active", attention: "idle" },
  labels: shape.labels ?? {},
  created_ms: shape.createdMs ?? 1000 + number,
  updated_ms: 5000,
  last_event_id: 3
})

const idsOf = (request: ListRequest): Array<string> => {
  const found: Array<string> = []
  for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
    const page = listRows(catalog, { ...request, ...(cursor === undefined ? {} : { cursor }) })
    found.push(...page.items.map((item) => item.conversation_id))
    cursor = page.next_cursor
  }
  return found
}

const newestFirst = (left: RowState, right: RowState): number =>
  right.created_ms - left.created_ms || (right.conversation_id < left.conversation_id ? -1 : 1)

const matches = (row: RowState, { label, q, state }: ListRequest): boolean => {
  const [key = "", ...value] = (label ?? "").split("=")
  const isLabeled =
    label === undefined || (value.length === 0 ? Object.hasOwn(row.labels, key) : row.labels[key] === value.join("="))
  return (
    isLabeled &&
    (state === undefined || row.view.session === state) &&
    searchText(row).includes((q ?? "").toLowerCase())
  )
}

describe("a listing", () => {
  it("finds what a scan finds, whatever the filter and the page size", () => {
    const text = fc.string({
      unit: fc.constantFrom("a", "b", "A", "é", "É", " ", '"', "%", "_", "*", "😀"),
      maxLength: 8
    })
    const label = fc.dictionary(fc.constantFrom("team", "tier", "x=y"), fc.constantFrom("a", "b", "", "=c"), {
      maxKeys: 2
    })
    const shape = fc.record({
      title: text,
      state: fc.constantFrom(...statuses),
      labels: label,
      createdMs: fc.integer({ min: 0, max: 5 })
    })
    const request = fc.record(
      {
        q: text,
        state: fc.constantFrom(...statuses),
        label: fc.constantFrom("team", "team=a", "team=", "tier==c", "none", "x"),
        limit: fc.integer({ min: 1, max: 7 })
      },
      { requiredKeys: [] }
    )
    fc.assert(
      fc.property(fc.array(shape, { maxLength: 25 }), request, (shapes, wanted) => {
        const rows = shapes.map((one, index) => rowWith(index + 1, one))
        for (const { conversationId } of catalog.heads("", 1000)) catalog.remove(conversationId)
        save(rows)
        const expected = rows.filter((row) => matches(row, wanted)).sort(newestFirst)
        expect(idsOf(wanted)).toEqual(expected.map((row) => row.conversation_id))
      }),
      { seed: seedFor("listing"), numRuns: count("listing runs", { fast: 200, soak: 3000 }) }
    )
  })

  it("shows rows as they were folded", () => {
    const row = rowWith(1, { title: "Tidy", labels: { team: "build" } })
    save([row])
    catalog.transaction(() => catalog.save({ row: rowWith(2, {}), damaged: "torn" }))
    const { items, next_cursor: next } = listRows(catalog, {})
    expect(next).toBeUndefined()
    expect(items[1]).toEqual({
      conversation_id: row.conversation_id,
      title: "Tidy",
      state: "active",
      labels: { team: "build" },
      created_ms: 1001,
      updated_ms: 5000,
      last_event_id: 3,
      attention: "idle",
      turns: 0,
      usage: { input_tokens: 0, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0, usd: 0 },
      model: "",
      workspace: null,
      agents_alive: 0,
      unfinished: false
    })
    expect(items[0]).toMatchObject({ damaged: "torn" })
  })

  it("goes on from its cursor whatever happened meanwhile", () => {
    save(Array.from({ length: 10 }, (_, index) => rowWith(index + 1, {})))
    const first = listRows(catalog, { limit: 4 })
    save([rowWith(50, {}), { ...rowWith(3, { title: "changed" }), updated_ms: 9_999 }])
    catalog.remove(conversationIdOf(7))
    catalog.remove(conversationIdOf(999))
    const rest = listRows(catalog, { limit: 100, cursor: first.next_cursor! })
    expect(rest.items.map((item) => item.conversation_id)).toEqual([6, 5, 4, 3, 2, 1].map(conversationIdOf))
    expect(rest.items[3]?.title).toBe("changed")
  })

  it("finds a row by what it is called now, not by what it was called", () => {
    save([rowWith(1, { title: "parser", labels: { team: "old" } })])
    save([rowWith(1, { title: "printer", labels: { team: "new" } })])
    expect(idsOf({ q: "parser" })).toEqual([])
    expect(idsOf({ q: "printer" })).toHaveLength(1)
    expect(idsOf({ label: "team=old" })).toEqual([])
    expect(idsOf({ label: "team=new" })).toHaveLength(1)
    expect(idsOf({ q: "nothing\0like it" })).toEqual([])
  })

  it.each<readonly [ListRequest, string]>([
    [{ limit: 0 }, "limit"],
    [{ limit: limits.listItemsMax + 1 }, "limit"],
    [{ limit: 1.5 }, "limit"],
    [{ state: "sleeping" as ConversationStatus }, "state"],
    [{ cursor: "garbage" }, "cursor"],
    [{ cursor: encodeCursor({ createdMs: 1, conversationId: "a b" }) }, "cursor"],
    [{ q: "x".repeat(limits.queryCharsMax + 1) }, "q"],
    [{ label: "x".repeat(1000) }, "label"]
  ])("refuses %j with the field that is wrong", (request, field) => {
    expect(() => listRows(catalog, request)).toThrow(expect.objectContaining({ _tag: "ListInvalid", field }))
  })
})

describe("a hundred thousand conversations", () => {
  let place: Place
  let small: CatalogDatabase
  let large: CatalogDatabase
  const rows = count("catalog rows", { fast: 20_000, soak: 100_000 })
  const words = ["fix", "the", "build", "parser", "tests", "docs", "release", "server", "client", "deploy"]

  const filled = (name: string, size: number): CatalogDatabase => {
    const { catalog: made } = CatalogDatabase.open(`${place.directory}/${name}.sqlite`, "here")
    for (let base = 0; base < size; base += 1000) {
      made.transaction(() => {
        for (let number = base; number < base + 1000; number++) {
          const title = `${words[number % 10]} ${words[(number >> 3) % 10]} ${number}`
          const labels = { team: words[number % 10]! }
          const state = number % 10 === 0 ? "active" : "closed"
          made.save({ row: rowWith(number, { title, labels, state }), damaged: undefined })
        }
      })
    }
    return made
  }

  beforeEach(() => {
    place = realPlace()
    small = filled("small", rows / 10)
    large = filled("large", rows)
  })
  afterEach(() => {
    small.close({ clean: true })
    large.close({ clean: true })
    place.dispose()
  })

  it("are listed by an index, and the cost does not grow with their number", () => {
    const requests: ReadonlyArray<ListRequest> = [
      {},
      { limit: 200 },
      { state: "active", limit: 200 },
      { label: "team=docs", limit: 200 },
      { label: "team", limit: 200 },
      { q: "parser", limit: 200 },
      { q: `${rows - 7}`, limit: 200 },
      { q: "not there", limit: 200 },
      { label: "team", state: "active", q: "not there", limit: 200 },
      { limit: 200, cursor: encodeCursor({ createdMs: 1000 + rows / 2, conversationId: conversationIdOf(rows / 2) }) }
    ]
    const floorMicros = 500
    for (const request of requests) {
      const [few, many] = [small, large].map((one) => costMicros(() => void listRows(one, request), 7) + floorMicros)
      // Ten times the rows: a scan would cost ten times as much.
      expect(many! / few!, JSON.stringify(request)).toBeLessThan(4)
    }
  })
})
