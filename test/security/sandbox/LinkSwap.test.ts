// Goal: a link that is swapped while a command writes leads nowhere outside. Method: one command swaps a directory for
// a link to the outside and back, without end, while another writes through that name; both in the sandbox.
import { mkdirSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { count, reportCount } from "../../support/counts.ts"
import { requirePart } from "../../support/require.ts"
import { bubblewrap, makeGround } from "../../support/sandbox.ts"

it("writes through a link that is being swapped never land outside", { timeout: 120_000 }, async (context) => {
  requirePart(context, bubblewrap)
  const ground = await makeGround()
  const outside = join(ground.base, "outside")
  mkdirSync(outside)
  const writes = count("writes through a link that is being swapped", { fast: 10_000, soak: 1_000_000 })
  const stop = new AbortController()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const swapping = ground.run(
    `mkdir real; perl -e '$| = 1; print "begun"; symlink "${outside}", "link"; for (;;) { rename "real", "way"; rename "way", "real"; rename "link", "way"; rename "way", "link" }'`,
    { signal: stop.signal, timeoutMs: 110_000, onOutput: () => begin() }
  )
  await begun
  const writer = `my ($made, $refused) = (0, 0); for my $n (1 .. ${writes}) { if (open(my $f, ">", "way/file$n")) { $made++ } else { $refused++ } } print "$made $refused"`
  const { stdout } = await ground.run(`perl -e '${writer}'`, { timeoutMs: 110_000 })
  stop.abort()
  await swapping
  const [made = 0, refused = 0] = stdout.split(" ").map(Number)
  expect(made + refused).toBe(writes)
  // Both sides of the race were met.
  expect(made).toBeGreaterThan(0)
  expect(refused).toBeGreaterThan(0)
  expect(readdirSync(outside)).toEqual([])
  reportCount("writes through a link that was being swapped, none outside", made + refused)
  await ground.clear()
})
