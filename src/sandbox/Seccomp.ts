// The system call filter as the kernel reads it: a small program in classic BPF, assembled here and handed to the
// sandbox by descriptor. Refused calls answer EPERM; clone3 and openat2 answer ENOSYS, so that libraries fall back to
// calls whose arguments a filter can see; a call under the numbers of another machine ends the process.
import {
  allowedFamilies,
  auditNumber,
  creationFlags,
  inspectedCalls,
  type Machine,
  type ModeCall,
  modeCalls,
  namespaceFlags,
  numberOn,
  refusedCalls,
  refusedTerminalRequests,
  setIdBits,
  x32Begin
} from "./SystemCalls.ts"

const operation = { load: 0x20, equals: 0x15, atLeast: 0x35, anyBitOf: 0x45, answer: 0x06 } as const
const EPERM = 1
const ENOSYS = 38
const answers = { allow: 0x7fff_0000, refuse: 0x0005_0000 | EPERM, absent: 0x0005_0000 | ENOSYS, kill: 0x8000_0000 }
type Answer = keyof typeof answers

/** Where a filter finds what it judges. Only the low half of an argument counts for the calls looked at here. */
const place = { callNumber: 0, machine: 4, argument: (index: number) => 16 + 8 * index } as const

type Step =
  | { readonly _tag: "Load"; readonly offset: number }
  | {
      readonly _tag: "Test"
      readonly code: number
      readonly value: number
      readonly then: Answer | "next"
      readonly otherwise: Answer | "next" | number
    }
  | { readonly _tag: "Answer"; readonly answer: Answer }

const test = (
  code: number,
  value: number,
  then: Answer | "next",
  otherwise: Answer | "next" | number = "next"
): Step => ({
  _tag: "Test",
  code,
  value,
  then,
  otherwise
})
const load = (offset: number): Step => ({ _tag: "Load", offset })
const answer = (name: Answer): Step => ({ _tag: "Answer", answer: name })

/** Judges one call by an argument: the steps end with an answer, and are jumped over for every other call. */
const inspect = (callNumber: number, steps: ReadonlyArray<Step>): ReadonlyArray<Step> => [
  test(operation.equals, callNumber, "next", steps.length),
  ...steps
]

const familyCheck: ReadonlyArray<Step> = [
  load(place.argument(0)),
  ...allowedFamilies.map((family) => test(operation.equals, family, "allow")),
  answer("refuse")
]

const modeCheck = (call: ModeCall, callNumber: number | undefined): ReadonlyArray<Step> => {
  if (callNumber === undefined) return []
  const counts =
    call.flagsArgument === undefined
      ? []
      : [load(place.argument(call.flagsArgument)), test(operation.anyBitOf, creationFlags, "next", "allow")]
  return inspect(callNumber, [
    ...counts,
    load(place.argument(call.modeArgument)),
    test(operation.anyBitOf, setIdBits, "refuse"),
    answer("allow")
  ])
}

const stepsFor = (machine: Machine): ReadonlyArray<Step> => {
  const numberOf = (name: keyof typeof inspectedCalls): number => inspectedCalls[name][machine === "x64" ? 0 : 1]
  const refused = Object.values(refusedCalls).flatMap((numbers) => numberOn(machine, numbers) ?? [])
  return [
    load(place.machine),
    test(operation.equals, auditNumber[machine], "next", "kill"),
    load(place.callNumber),
    ...(machine === "x64" ? [test(operation.atLeast, x32Begin, "absent")] : []),
    ...refused.map((callNumber) => test(operation.equals, callNumber, "refuse")),
    ...[numberOf("clone3"), numberOf("openat2")].map((callNumber) => test(operation.equals, callNumber, "absent")),
    ...inspect(numberOf("clone"), [
      load(place.argument(0)),
      test(operation.anyBitOf, namespaceFlags, "refuse"),
      answer("allow")
    ]),
    ...inspect(numberOf("ioctl"), [
      load(place.argument(1)),
      ...refusedTerminalRequests.map((request) => test(operation.equals, request, "refuse")),
      answer("allow")
    ]),
    ...modeCalls.flatMap((call) => modeCheck(call, numberOn(machine, call.numbers))),
    ...inspect(numberOf("socket"), familyCheck),
    ...inspect(numberOf("socketpair"), familyCheck),
    answer("allow")
  ]
}

type Instruction = readonly [code: number, then: number, otherwise: number, value: number]

const answerOrder: ReadonlyArray<Answer> = ["allow", "refuse", "absent", "kill"]

/** The filter for a machine: eight bytes an instruction, little-endian, as both machines are. */
export const assembleFilter = (machine: Machine): Uint8Array => {
  const steps = stepsFor(machine)
  const all: ReadonlyArray<Step> = [...steps, ...answerOrder.map(answer)]
  const bytes = new DataView(new ArrayBuffer(8 * all.length))
  const distance = (from: number, target: Answer | "next" | number): number => {
    if (typeof target === "number") return target
    const jump = target === "next" ? 0 : steps.length + answerOrder.indexOf(target) - from - 1
    if (jump > 255) throw new RangeError(`a jump of ${jump} instructions does not fit a filter`)
    return jump
  }
  const write = (index: number, [code, then, otherwise, value]: Instruction): void => {
    bytes.setUint16(8 * index, code, true)
    bytes.setUint8(8 * index + 2, then)
    bytes.setUint8(8 * index + 3, otherwise)
    bytes.setUint32(8 * index + 4, value >>> 0, true)
  }
  for (const [index, step] of all.entries()) {
    if (step._tag === "Load") write(index, [operation.load, 0, 0, step.offset])
    else if (step._tag === "Answer") write(index, [operation.answer, 0, 0, answers[step.answer]])
    else write(index, [step.code, distance(index, step.then), distance(index, step.otherwise), step.value])
  }
  return new Uint8Array(bytes.buffer)
}
