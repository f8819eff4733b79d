// Goal: a ticket is good for one connection and for thirty seconds, and there are never too many. Method: a clock that the
// test sets.
import { describe, expect, it } from "vitest"
import { Auth, namedToken } from "#src/server/Auth.ts"
import { limits } from "#src/wire/WireLimits.ts"

const principal = { name: "local", role: "operator" } as const

const world = () => {
  const clock = { nowMs: 1_000_000 }
  return { clock, auth: new Auth([namedToken("local", "operator", "a-token")], () => clock.nowMs) }
}

describe("a ticket", () => {
  it.each([
    [0, true],
    [limits.ticketValidMs - 1, true],
    [limits.ticketValidMs, false],
    [limits.ticketValidMs + 1, false],
    [86_400_000, false]
  ])("that is %i ms old is good: %s", (ageMs, isGood) => {
    const { auth, clock } = world()
    const { expires_ms: expiresMs, ticket } = auth.issueTicket(principal)
    expect(expiresMs).toBe(clock.nowMs + limits.ticketValidMs)
    clock.nowMs += ageMs
    expect(auth.byTicket(ticket)).toEqual(isGood ? principal : undefined)
    expect(auth.byTicket(ticket)).toBeUndefined()
  })

  it("that came too late is not good again when the clock is set back", () => {
    const { auth, clock } = world()
    const { ticket } = auth.issueTicket(principal)
    clock.nowMs += limits.ticketValidMs
    expect(auth.byTicket(ticket)).toBeUndefined()
    clock.nowMs -= limits.ticketValidMs
    expect(auth.byTicket(ticket)).toBeUndefined()
  })

  it("is the first to go when there are too many, and those that have expired go before it", () => {
    const { auth, clock } = world()
    const expired = Array.from({ length: limits.ticketsMax / 2 }, () => auth.issueTicket(principal).ticket)
    clock.nowMs += limits.ticketValidMs
    const kept = Array.from({ length: limits.ticketsMax }, () => auth.issueTicket(principal).ticket)
    clock.nowMs -= limits.ticketValidMs
    expect(expired.map((ticket) => auth.byTicket(ticket)).every((found) => found === undefined)).toBe(true)
    const last = auth.issueTicket(principal).ticket
    expect(auth.byTicket(kept[0])).toBeUndefined()
    expect([kept[1], kept.at(-1), last].map((ticket) => auth.byTicket(ticket))).toEqual([
      principal,
      principal,
      principal
    ])
  })
})
