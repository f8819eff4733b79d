// Latencies in buckets of about 3 %, so that a million of them cost neither memory nor a sort.

const SUB_BITS = 5
const SUB_COUNT = 1 << SUB_BITS
/** Nanosecond steps of 128: values below are told apart to that. */
const STEP_MS = 0.000_128

const bucketOf = (steps: number): number => {
  const exponent = Math.max(0, 31 - SUB_BITS - Math.clz32(steps))
  return exponent * SUB_COUNT + (steps >>> exponent)
}

/** The middle of a bucket, in steps. */
const valueOf = (bucket: number): number => {
  const exponent = Math.max(0, Math.floor(bucket / SUB_COUNT) - 1)
  return (bucket - exponent * SUB_COUNT + 0.5) * 2 ** exponent
}

export class Latency {
  private readonly buckets = new Float64Array(SUB_COUNT * 33)
  count = 0

  record(ms: number): void {
    const bucket = bucketOf((ms / STEP_MS) >>> 0)
    this.buckets[bucket] = this.buckets[bucket]! + 1
    this.count += 1
  }

  /** The latency that `share` of all records stay below; 0 when there are none. */
  percentileMs(share: number): number {
    let left = share * this.count
    for (let bucket = 0; bucket < this.buckets.length; bucket++) {
      left -= this.buckets[bucket]!
      if (left <= 0 && this.buckets[bucket]! > 0) return valueOf(bucket) * STEP_MS
    }
    return 0
  }
}
