// Goal: the filter says of every system call what the tables say, on both machines. Method: the assembled bytes are run
// by a small interpreter of the kernel's instruction set, for every number and for chosen arguments.
import { describe, expect, it } from "vitest"
import { assembleFilter } from "#src/sandbox/Seccomp.ts"
import {
  allowedFamilies,
  auditNumber,
  type Machine,
  modeCalls,
  numberOn,
  refusedCalls
} from "#src/sandbox/SystemCalls.ts"
import { reportCount } from "../support/counts.ts"

const answers = new Map([
  [0x7fff_0000, "allow"],
  [0x0005_0001, "EPERM"],
  [0x0005_0026, "ENOSYS"],
  [0x8000_0000, "kill"]
])

interface Call {
  readonly machine: number
  readonly callNumber: number
  readonly args?: ReadonlyArray<number>
}

/** What the kernel would answer. Throws where it would refuse the filter itself. */
const judge = (filter: Uint8Array, { args = [], callNumber, machine }: Call): string => {
  const view = new DataView(filter.buffer)
  const data = new DataView(new ArrayBuffer(64))
  data.setUint32(0, callNumber, true)
  data.setUint32(4, machine, true)
  for (const [index, value] of args.entries())
    data.setBigUint64(16 + 8 * index, BigInt.asUintN(64, BigInt(value)), true)
  let accumulator = 0
  for (let at = 0; at < filter.length / 8; at++) {
    const [code, then, otherwise] = [view.getUint16(8 * at, true), view.getUint8(8 * at + 2), view.getUint8(8 * at + 3)]
    const value = view.getUint32(8 * at + 4, true)
    if (code === 0x06) return answers.get(value) ?? `unknown ${value}`
    if (code === 0x20) accumulator = data.getUint32(value, true)
    else if (code === 0x15) at += accumulator === value ? then : otherwise
    else if (code === 0x35) at += accumulator >= value ? then : otherwise
    else if (code === 0x45) at += (accumulator & value) !== 0 ? then : otherwise
    else throw new Error(`instruction ${at} has the unknown code ${code}`)
  }
  throw new Error("the filter has no end")
}

const special: Readonly<Record<Machine, { readonly [name: string]: number }>> = {
  x64: { clone: 56, clone3: 435, openat2: 437, ioctl: 16, socket: 41, socketpair: 53, execve: 59, read: 0, getpid: 39 },
  arm64: {
    clone: 220,
    clone3: 435,
    openat2: 437,
    ioctl: 29,
    socket: 198,
    socketpair: 199,
    execve: 221,
    read: 63,
    getpid: 172
  }
}

describe.each(["x64", "arm64"] as const)("the filter for %s", (machine) => {
  const filter = assembleFilter(machine)
  const number = (name: string): number => special[machine][name] ?? -1
  const ask = (callNumber: number, ...args: ReadonlyArray<number>) =>
    judge(filter, { machine: auditNumber[machine], callNumber, args })

  it("refuses exactly the calls of the table, of all numbers there are", () => {
    const refused = new Set(Object.values(refusedCalls).flatMap((numbers) => numberOn(machine, numbers) ?? []))
    const absent = new Set([number("clone3"), number("openat2")])
    // Arguments that no closer look objects to: an IPv4 socket, no mode, no flag.
    for (let callNumber = 0; callNumber < 600; callNumber++) {
      const isSocket = callNumber === number("socket") || callNumber === number("socketpair")
      const expected = refused.has(callNumber) ? "EPERM" : absent.has(callNumber) ? "ENOSYS" : "allow"
      expect([callNumber, ask(callNumber, isSocket ? 2 : 0, 0, 0, 0)]).toEqual([callNumber, expected])
    }
    reportCount("system call numbers judged by the filter", 600)
  })

  it("lets processes and threads be made, but no namespaces", () => {
    expect(ask(number("clone"), 17)).toBe("allow")
    expect(ask(number("clone"), 0x3d0f00)).toBe("allow")
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000])
      expect(ask(number("clone"), flag | 17)).toBe("EPERM")
  })

  it("lets nobody type into a terminal, also with bits in the half that the kernel ignores", () => {
    expect(ask(number("ioctl"), 0, 0x5401)).toBe("allow")
    for (const request of [0x5412, 0x541c, 0x1_0000_5412]) expect(ask(number("ioctl"), 0, request)).toBe("EPERM")
  })

  it("has four families of sockets", () => {
    for (let family = 0; family < 64; family++)
      for (const name of ["socket", "socketpair"])
        expect(ask(number(name), family)).toBe(allowedFamilies.includes(family) ? "allow" : "EPERM")
  })

  it("lets no program be made that runs as its owner", () => {
    for (const { flagsArgument, modeArgument, numbers } of modeCalls) {
      const callNumber = numberOn(machine, numbers)
      if (callNumber === undefined) continue
      const withMode = (mode: number, flags: number): string => {
        const args = [0, 0, 0, 0, 0, 0]
        args[modeArgument] = mode
        if (flagsArgument !== undefined) args[flagsArgument] = flags
        return ask(callNumber, ...args)
      }
      expect(withMode(0o755, 0x40)).toBe("allow")
      for (const mode of [0o4755, 0o2755, 0o6000]) expect(withMode(mode, 0x41)).toBe("EPERM")
      // What stands where the mode would be counts only when a file is made.
      expect(withMode(0o4755, 0)).toBe(flagsArgument === undefined ? "EPERM" : "allow")
    }
  })

  it("ends whoever calls by the numbers of another machine", () => {
    for (const other of [0x4000_0003, 0x4000_0028, auditNumber[machine === "x64" ? "arm64" : "x64"]])
      expect(judge(filter, { machine: other, callNumber: number("read") })).toBe("kill")
    if (machine === "x64") expect(ask(0x4000_0000 + number("getpid"))).toBe("ENOSYS")
  })

  it("is small enough for the kernel", () => {
    expect(filter.length % 8).toBe(0)
    expect(filter.length / 8).toBeLessThan(4_096)
  })
})
