// Stands for a server that is killed: starts programs that would outlive it, says so, and waits.
import { makeGround } from "../../support/sandbox.ts"

const [mark = ""] = process.argv.slice(2)
const ground = await makeGround()
const script = `trap '' TERM HUP; (setsid sh -c 'setsid sleep ${mark} & sleep ${mark}' >/dev/null 2>&1 &) ; echo ready; sleep ${mark}`
let ready = 0
for (let index = 0; index < 3; index++)
  void ground.run(script, {
    timeoutMs: 600_000,
    onOutput: () => {
      ready += 1
      if (ready === 3) process.stdout.write(`${ground.base}\n`)
    }
  })
