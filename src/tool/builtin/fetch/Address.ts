// Which addresses are out on the open Internet. Everything that leads to this machine, its network, the machinery of a
// cloud, or that hides such an address inside another is not; what is not recognized is not either.
import { isIPv4, isIPv6 } from "node:net"

interface Range {
  readonly name: string
  readonly bytes: ReadonlyArray<number>
  readonly bits: number
}

const range = (name: string, bytes: ReadonlyArray<number>, bits: number): Range => ({ name, bytes, bits })

/** Ranges of IPv4 that no page is served from. */
const closed4: ReadonlyArray<Range> = [
  range("unspecified", [0], 8),
  range("private", [10], 8),
  range("shared by a carrier", [100, 64], 10),
  range("loopback", [127], 8),
  range("link-local", [169, 254], 16),
  range("private", [172, 16], 12),
  range("reserved for protocols", [192, 0, 0], 24),
  range("for documentation", [192, 0, 2], 24),
  range("relay of 6to4", [192, 88, 99], 24),
  range("private", [192, 168], 16),
  range("for benchmarks", [198, 18], 15),
  range("for documentation", [198, 51, 100], 24),
  range("for documentation", [203, 0, 113], 24),
  range("multicast", [224], 4),
  range("reserved", [240], 4),
  // A public address that answers only from inside one cloud, with what belongs to the machine that asks.
  range("machinery of a cloud", [168, 63, 129, 16], 32)
]

/** Only this part of IPv6 is routed on the open Internet. */
const open6 = range("global", [0x20], 3)

const closed6: ReadonlyArray<Range> = [
  range("Teredo or another tunnel", [0x20, 0x01, 0x00], 23),
  range("for documentation", [0x20, 0x01, 0x0d, 0xb8], 32),
  range("6to4", [0x20, 0x02], 16),
  range("for documentation", [0x3f, 0xff, 0x00], 20)
]

/** Names of what is refused outside `open6`, for people; whatever is not listed is refused as well. */
const named6: ReadonlyArray<Range> = [
  range("loopback", [...Array.from({ length: 15 }, () => 0), 1], 128),
  range(
    "unspecified",
    Array.from({ length: 16 }, () => 0),
    128
  ),
  range("IPv4 in IPv6", [...Array.from({ length: 10 }, () => 0), 0xff, 0xff], 96),
  range(
    "IPv4 in IPv6",
    Array.from({ length: 12 }, () => 0),
    96
  ),
  range("NAT64", [0x00, 0x64, 0xff, 0x9b], 32),
  range("private", [0xfc], 7),
  range("link-local", [0xfe, 0x80], 10),
  range("site-local", [0xfe, 0xc0], 10),
  range("multicast", [0xff], 8)
]

const isWithin = (bytes: ReadonlyArray<number>, { bits, bytes: prefix }: Range): boolean => {
  for (let bit = 0; bit < bits; bit += 8) {
    const mask = bits - bit >= 8 ? 0xff : (0xff << (8 - (bits - bit))) & 0xff
    if (((bytes[bit / 8] ?? 0) & mask) !== ((prefix[bit / 8] ?? 0) & mask)) return false
  }
  return true
}

const bytes4 = (text: string): ReadonlyArray<number> => text.split(".").map(Number)

const groups = (text: string): ReadonlyArray<number> =>
  text === ""
    ? []
    : text.split(":").flatMap((group) => {
        if (group.includes(".")) return bytes4(group)
        const value = Number.parseInt(group, 16)
        return [value >> 8, value & 0xff]
      })

const bytes6 = (text: string): ReadonlyArray<number> => {
  const [left = "", right] = text.split("::")
  const head = groups(left)
  if (right === undefined) return head
  const tail = groups(right)
  return [...head, ...Array.from({ length: 16 - head.length - tail.length }, () => 0), ...tail]
}

/** Why nothing may be fetched from an address; nothing when it is out on the open Internet. */
export const addressIssue = (address: string): string | undefined => {
  if (isIPv4(address)) return closed4.find((one) => isWithin(bytes4(address), one))?.name
  if (!isIPv6(address) || address.includes("%")) return "no address that is known"
  const bytes = bytes6(address)
  if (!isWithin(bytes, open6)) return named6.find((one) => isWithin(bytes, one))?.name ?? "not global"
  return closed6.find((one) => isWithin(bytes, one))?.name
}
