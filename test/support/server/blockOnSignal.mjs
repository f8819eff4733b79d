// Loaded into a server process by a test: on SIGUSR2 it blocks the event loop, as a fault of ours would, until the
// watchdog has written; on SIGPIPE it spins in microtasks instead.
import { existsSync } from "node:fs"

const mark = process.env["ECHS_TEST_UNBLOCK"] ?? ""

process.on("SIGUSR2", function blockedOnPurpose() {
  while (!existsSync(mark));
})

process.on("SIGPIPE", async function spinningOnPurpose() {
  while (!existsSync(mark)) await undefined
})
