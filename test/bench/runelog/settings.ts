// What the runelog benchmark measures with: sizes and counts of one run. The defaults fit four minutes on a quiet
// machine; a quick look is BENCH_SECONDS=0.2 BENCH_RUNES=100000 BENCH_MEMORY_MIB=64.

export const positive = (name: string, fallback: number): number => {
  const text = process.env[name]
  if (text === undefined || text === "") return fallback
  const value = Number(text)
  if (!Number.isFinite(value) || value <= 0) throw new Error(`${name} must be a number above 0, not "${text}"`)
  return value
}

export interface Settings {
  /** Length of one sample. */
  readonly seconds: number
  /** Samples of each row, taken in turns with all other rows. */
  readonly rounds: number
  /** Runes in the log that is scanned and reopened. */
  readonly runes: number
  /** The memory of a reader is watched over this much log. */
  readonly memoryLogBytes: number
}

const MIB = 1024 * 1024

export const readSettings = (): Settings => {
  return {
    seconds: positive("BENCH_SECONDS", 0.8),
    rounds: Math.ceil(positive("BENCH_ROUNDS", 3)),
    runes: Math.ceil(positive("BENCH_RUNES", 1_000_000)),
    memoryLogBytes: positive("BENCH_MEMORY_MIB", 1024) * MIB
  }
}

/** Every record that is written, by whomever. */
export const bodyBytes = 256
export const body: Buffer = Buffer.alloc(bodyBytes, "rune ")

/** Records that each conversation has before a keyed row is measured: an empty tree would flatter who keeps trees. */
export const recordsBefore = 32

export const outstandingCounts: ReadonlyArray<number> = [1, 16, 256, 4096]
export const conversationCounts: ReadonlyArray<number> = [100, 1_000, 10_000]
export const outstandingKeyed = 256
export const conversationsKeyed = 1_000
export const rowsPerTransaction = 256
