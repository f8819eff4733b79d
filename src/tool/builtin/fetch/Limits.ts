// Every limit of fetching, in one table.

export const fetchLimits = {
  urlCharsMax: 8192,
  /** From the first look-up of a name to the last byte. */
  timeoutMs: 30_000,
  connectMs: 10_000,
  redirectsMax: 5,
  /** Addresses of one host that are tried. */
  addressesMax: 4,
  /** Of the page as it is after unpacking; the rest is not read. */
  bodyBytesMax: 5_242_880,
  titleCharsMax: 300
} as const

/** Ports that serve pages. Others belong to services that were never meant to be spoken to by a page's reader. */
export const portsServed: ReadonlySet<number> = new Set([80, 443, 8000, 8008, 8080, 8443, 8888])
